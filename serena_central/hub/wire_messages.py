"""Messages of upstreams as they come in, on whatever wire: read, repaired where that can be done, and the failure of a
request whose answer can't be read.
"""

import json
import re

import msgspec
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from serena_central.core.decoding import from_json

MAX_BATCH = 1000
"""Messages: an array that says oftener which protocol it follows is no batch."""

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Longer ones are dropped: nobody could be sent such an answer."""

MOST_PARTS = 200_000
"""Objects and lists in a message. One with more is dropped: each takes some 10 µs and 1 KB until it is passed on, and
64 MB hold millions."""

TOO_MANY_PARTS = f"its answer has more than {MOST_PARTS:,} objects and lists, which is the limit"

SLICE_BYTES = 1_000_000
"""Looked at before it is asked whether that is enough."""

END_BYTES = 256
"""Of a message's beginning and end, by which an answer that can't be read is known."""

UNREACHABLE = "serena-central: unreachable"
"""The data of a failure where nothing of the server was heard."""

NO_PROTOCOL = "its answer does not follow the protocol"

_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""In JSON, where there may be any."""

_BLANK_LINE = re.compile(rb"(?:\r\n?|\n){2}")

_NUMBER = rb'"id"\s*:\s*(\d{1,15})\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_OUTCOME = rb'"(?:result|error)"\s*:'
_ANSWER = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _NUMBER, _VERSION, _OUTCOME))
_ANSWER_BEGINS = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _OUTCOME))
_ANSWER_ENDS = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*\Z" % (_NUMBER, _VERSION))
"""The id stands before an answer's content, or behind it."""


class _Keys(msgspec.Struct):
    """Which of them a message has: the others are empty."""

    method: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class Parts:
    """Counts the objects and lists of JSON that comes in slices."""

    def __init__(self) -> None:
        self.count = 0
        self._in_string = False
        self._rest = b""
        """A backslash at the end of a slice: what it escapes comes with the next one."""
        self._line_ends = b""
        """At the end of a slice of an event stream: the next one may begin with more of them."""

    def add(self, piece: bytes) -> int:
        """The number of them so far."""
        text = (self._rest + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        self._rest = b"\\" if text.endswith(b"\\") else b""
        pieces = text.removesuffix(b"\\").split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        self.count += outside.count(b"{") + outside.count(b"[")
        return self.count

    def add_events(self, piece: bytes) -> int:
        """As `add`, of an event stream: the largest number in an event that goes on or ends with this slice."""
        text = self._line_ends + piece
        body = text.rstrip(b"\r\n")
        self._line_ends = text[len(body) :][:4]
        first, *others = _BLANK_LINE.split(body)
        largest = self.add(first)
        for event in others:
            self.count, self._in_string, self._rest = 0, False, b""
            largest = max(largest, self.add(event))
        return largest


def has_too_many_parts(text: bytes) -> bool:
    """Whether a message has more than `MOST_PARTS`."""
    # Texts may hold many braces; to look where they stand takes 20 ms for each MB.
    if text.count(b"{") + text.count(b"[") <= MOST_PARTS:
        return False
    parts = Parts()
    return any(parts.add(text[at : at + SLICE_BYTES]) > MOST_PARTS for at in range(0, len(text), SLICE_BYTES))


def message_of(text: bytes) -> JSONRPCMessage | None:
    """The message in a text; None if there is none. Half a surrogate pair, which is what is left of an emoji where a
    server cuts a text, and bytes that are no UTF-8 become question marks: the rest is worth having."""
    for read in (lambda: text, lambda: _repaired(text)):
        try:
            return _message(read())
        except (ValidationError, ValueError, RecursionError):
            continue
    return None


def _message(text: bytes) -> JSONRPCMessage:
    """The SDK reads a message as each kind of all; of a long one that takes four times as long, and as much memory."""
    try:
        keys = from_json(text, _Keys)
    except msgspec.DecodeError:  # NaN is none for it, which servers in Python write, and the SDK reads
        keys = _Keys()
    if bytes(keys.result) and not bytes(keys.method) and not bytes(keys.error):
        return JSONRPCResponse.model_validate_json(text, by_name=False)
    return jsonrpc_message_adapter.validate_json(text, by_name=False)


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
