"""Inspects the bodies of handshake-era POST requests before the transport does: ids, versions, batches.

A body is read once, and passed on unchanged. Its errors are answered here only where the transport would give no
answer, or a misleading one.
"""

from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from serena_central.core.decoding import from_json, json_decoder
from serena_central.mcp_server.protocol import CANCELLED

MOST_MESSAGES = 100
"""Of a batch."""

BAD_ID = "The id of a request is a string or an integer."


class _Cancelled(msgspec.Struct):
    requestId: int | str  # noqa: N815 - the wire's name


class _Message(msgspec.Struct):
    """A JSON-RPC message; what has no method is an answer, what has no id a notification."""

    jsonrpc: Any = None
    method: Any = msgspec.UNSET
    id: Any = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def problem(self) -> str | None:
        """Why it is not a message of MCP."""
        if self.jsonrpc != "2.0":
            return 'The member jsonrpc of a message is "2.0".'
        if self.method is msgspec.UNSET:
            is_answer = self.result is not msgspec.UNSET or self.error is not msgspec.UNSET
            return None if is_answer else "A message has a method, a result or an error."
        if not isinstance(self.method, str):
            return "The method of a message is a string."
        if not _is_id(self.id):
            return BAD_ID
        return None if bytes(self.params).lstrip()[:1] == b"{" else "The params of a message are an object."


_decode_message = json_decoder(_Message).decode
_decode_parts = json_decoder(list[msgspec.Raw]).decode


class Body:
    """One body. `receive` replays it, and then continues with the connection."""

    def __init__(self, messages: list[Message], receive: Receive) -> None:
        self.content = b"".join(message.get("body", b"") for message in messages)
        self._left = iter(messages)
        self._receive = receive

    async def receive(self) -> Message:
        message = next(self._left, None)
        return await self._receive() if message is None else message

    def parts(self) -> list[bytes] | None:
        """The messages of a batch; None for a body that is not a batch."""
        if self.content.lstrip()[:1] != b"[":
            return None
        try:
            return [bytes(part) for part in _decode_parts(self.content)]
        except (msgspec.DecodeError, RecursionError):
            return None  # the transport says what is wrong with it


class Head:
    """What the first look at a message tells. Without a method and id for what can't be read."""

    def __init__(self, content: bytes) -> None:
        self.problem: str | None = None
        """Why it is not a message of MCP; None also where the body is not JSON."""
        message = _Message()
        try:
            message = _decode_message(content)
            self.problem = message.problem
        except msgspec.ValidationError:
            self.problem = "A message is a JSON object."
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the transport says what is wrong with it
        self.method: str | None = message.method if isinstance(message.method, str) else None
        self.request: str | None = None
        """The id of a request, as its transport writes it."""
        if self.method is not None and message.id is not msgspec.UNSET and self.problem is None:
            self.request = str(message.id)
        self.is_notification = self.method is not None and self.request is None and self.problem is None
        self.answered: Any = message.id if self.method is None and self.problem is None else None
        """The id of the question that it answers."""
        self.result: msgspec.Raw | None = message.result if isinstance(message.result, msgspec.Raw) else None
        """Of an answer; None if it is an error."""
        self.error: msgspec.Raw | None = message.error if isinstance(message.error, msgspec.Raw) else None
        self._params = message.params

    @property
    def cancelled(self) -> str | None:
        """The request that a `notifications/cancelled` names, as its transport writes it."""
        if self.method != CANCELLED:
            return None
        try:
            return str(from_json(self._params, _Cancelled).requestId)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # the SDK says what is wrong with it


async def body_of(receive: Receive) -> Body:
    """
    Raises:
        ClientDisconnect: the client has gone before the whole was here.
    """
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    if messages[-1]["type"] == "http.disconnect":
        raise ClientDisconnect
    return Body(messages, receive)


def _is_id(value: Any) -> bool:
    return value is msgspec.UNSET or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
