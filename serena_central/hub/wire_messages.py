"""Messages of upstreams as they come in, on whatever wire: read, repaired where that can be done, and the failure of a
request whose answer can't be read.
"""

import json
import re

import msgspec
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

from serena_central.core.decoding import from_json

MAX_BATCH = 1000
"""Messages: an array that says oftener which protocol it follows is no batch."""

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Longer ones are dropped: nobody could be sent such an answer."""

END_BYTES = 256
"""Of a message's beginning and end, by which an answer that can't be read is known."""

UNREACHABLE = "serena-central: unreachable"
"""The data of a failure where nothing of the server was heard."""

NO_PROTOCOL = "its answer does not follow the protocol"

_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""In JSON, where there may be any."""

_NUMBER = rb'"id"\s*:\s*(\d{1,15})\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_OUTCOME = rb'"(?:result|error)"\s*:'
_ANSWER = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _NUMBER, _VERSION, _OUTCOME))
_ANSWER_BEGINS = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _OUTCOME))
_ANSWER_ENDS = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*\Z" % (_NUMBER, _VERSION))
"""The id stands before an answer's content, or behind it."""


def message_of(text: bytes) -> JSONRPCMessage | None:
    """The message in a text; None if there is none. Half a surrogate pair, which is what is left of an emoji where a
    server cuts a text, and bytes that are no UTF-8 become question marks: the rest is worth having."""
    for read in (lambda: text, lambda: _repaired(text)):
        try:
            return jsonrpc_message_adapter.validate_json(read(), by_name=False)
        except (ValidationError, ValueError, RecursionError):
            continue
    return None


def batch_of(text: bytes) -> list[JSONRPCMessage]:
    """The messages of a batch, as MCP of 2025-03-26 had them; what is none in it is left out. Empty if a text is no
    batch."""
    # Data that a program prints may be an array of millions: only what says that it is a message is looked at.
    if not text.startswith(b"[") or not 0 < text.count(b'"jsonrpc"') <= MAX_BATCH:
        return []
    try:
        parts = from_json(text, list[msgspec.Raw])
    except msgspec.MsgspecError:
        return []
    objects = [part for one in parts if (part := bytes(one)).startswith(b"{")]
    found = (message_of(part) or failed_answer(part, NO_PROTOCOL) for part in objects)
    return [message for message in found if message is not None]


def _repaired(text: bytes) -> bytes:
    """Raises ValueError: nothing in it can be repaired, and reading a long text in vain holds up all others."""
    read = text.decode("utf-8", "replace")
    if "\ufffd" not in read and not _HALVES.search(text):
        raise ValueError
    return json.dumps(json.loads(read), ensure_ascii=False).encode("utf-8", "replace")


def failed_answer(text: bytes, why: str) -> JSONRPCError | None:
    """The failure of the request that a text was to answer; None if it looks like no answer."""
    found = _ANSWER.match(text)
    if found is None and _ANSWER_BEGINS.match(text):
        found = _ANSWER_ENDS.search(text, max(len(text) - END_BYTES, 0))
    return None if found is None else failure(int(found[1]), why)


def failure(request: RequestId, why: str, data: object = None) -> JSONRPCError:
    """What stands for an answer that does not come."""
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=INTERNAL_ERROR, message=why, data=data))


def ends_of(text: bytearray) -> bytearray:
    """What of a message that is too long is kept, for `failed_answer`."""
    return text if len(text) <= 2 * END_BYTES else text[:END_BYTES] + text[-END_BYTES:]


def too_long(size: int, limit: int) -> str:
    """Why an answer of so many bytes is dropped."""
    return f"its answer has {size / 1e6:.0f} MB, the limit is {limit / 1e6:.0f} MB"
