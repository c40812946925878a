"""JSON-RPC messages as far as a proxy must understand them: what kind, whose answer, which headers follow from it.

Messages are passed on as they came. What is written here are the errors for what a client got wrong, and for what the
server could not answer.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
Id = int | float | str

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""MCP 2026-07-28, "Standard headers": what `Mcp-Name` repeats."""

_PLAIN = re.compile(r"[\x20-\x7e]+")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d{1,18}|"[^"\\]*"),"(?:result|error)":')
"""How our server writes an answer: recognized without reading all of it."""

_TOO_LARGE = (float("inf"), float("-inf"))
"""What Python reads in place of 1e999."""

_SAFE_METHODS = ("tools/list", "server/discover", "ping", "initialize", "completion/complete", "logging/setLevel")
_SAFE_FAMILIES = ("resources/", "prompts/", "subscriptions/")


class Invalid(Exception):
    """A line that is no message. `answer` is the JSON-RPC error for it."""

    def __init__(self, code: int, text: str, message_id: Id | None = None) -> None:
        super().__init__(text)
        self.answer = error_answer(message_id, code, text)


class Message(NamedTuple):
    """One line of the client. `raw` is the line itself."""

    raw: bytes
    method: str | None
    """None for an answer to the server."""
    id: Id | None
    """None for a notification."""
    params: Mapping[str, Any]

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not None

    @property
    def modern_version(self) -> str | None:
        """The protocol version that a request of the modern era carries in itself."""
        meta = self.params.get("_meta")
        version = cast("dict[str, Any]", meta).get(VERSION_KEY) if isinstance(meta, dict) else None
        return version if isinstance(version, str) and _PLAIN.fullmatch(version) else None

    @property
    def name(self) -> str | None:
        """What `Mcp-Name` says."""
        value = self.params.get(_NAMED_BY.get(self.method or "", ""))
        return value if isinstance(value, str) else None

    @property
    def repeats_safely(self) -> bool:
        """Whether doing it twice is doing it once; tool calls are judged by who knows the tools."""
        return self.method in _SAFE_METHODS or (self.method or "").startswith(_SAFE_FAMILIES)


def parse(line: bytes) -> Message:
    """One line of the client.

    Raises:
        Invalid: it is not a JSON-RPC message.
    """
    try:
        said: Any = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Invalid(PARSE_ERROR, f"The line is not valid JSON: {str(error)[:200]}.") from None
    if isinstance(said, list):
        raise Invalid(INVALID_REQUEST, "Batches are not supported. Send each message on its own line.")
    if not isinstance(said, dict):
        raise Invalid(INVALID_REQUEST, "A JSON-RPC message must be an object.")
    return _message(line, cast("dict[str, Any]", said))


def _no_number(name: str) -> None:
    """JSON has no NaN and no infinity; an answer that repeated them as its id could not be read."""
    raise ValueError(f"{name} is not a JSON number")


def _message(line: bytes, said: dict[str, Any]) -> Message:
    message_id, method, params = said.get("id"), said.get("method"), said.get("params")
    is_id = isinstance(message_id, int | float | str) and not isinstance(message_id, bool)
    if message_id is not None and (not is_id or message_id in _TOO_LARGE):
        raise Invalid(INVALID_REQUEST, "An id must be a string or a number.")
    known = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    if isinstance(method, str):
        if "id" in said and message_id is None:
            raise Invalid(INVALID_REQUEST, "A request's id must be a string or a number, not null.")
        if params is not None and not isinstance(params, dict):
            raise Invalid(INVALID_REQUEST, "params must be an object.", message_id)
        return Message(line, method, message_id, known)
    if method is None and message_id is not None and ("result" in said or "error" in said):
        return Message(line, None, message_id, {})
    raise Invalid(INVALID_REQUEST, "A message must have a method, or an id with a result or an error.", message_id)


def key_of(message_id: Any) -> tuple[bool, Any]:
    """Tells 1 from "1"."""
    return isinstance(message_id, str), message_id


def one_line(data: bytes) -> bytes:
    """A message as one line: outside of strings line ends are white space, inside JSON has none."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data


def answered_id(data: bytes) -> tuple[bool, Any] | None:
    """The key of the request that a message of the server answers; None for other messages.

    An answer without an id (the server could not read it) has the key (False, None).

    Raises:
        ValueError: it is not a JSON object.
    """
    quick = _ANSWER.match(data)
    if quick:
        return key_of(json.loads(quick[1]))
    said = read_object(data)
    if "method" in said or not ("result" in said or "error" in said):
        return None
    return key_of(said.get("id"))


def read_object(data: bytes) -> dict[str, Any]:
    """A message of the server, parsed.

    Raises:
        ValueError
    """
    try:
        said: Any = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(said, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", said)


def error_answer(message_id: Id | None, code: int, text: str) -> bytes:
    """The line of an error."""
    answer = {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}}
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def header_value(text: str) -> bytes:
    """A value of the modern era's headers; what HTTP would not carry unchanged is wrapped (MCP 2026-07-28)."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text.encode("ascii")
    from base64 import b64encode  # rarely needed

    return b"=?base64?" + b64encode(text.encode("utf-8", "surrogatepass")) + b"?="


def read_only_tools(answer: bytes) -> set[str]:
    """Names of the tools in an answer to tools/list that only read."""
    try:
        result = read_object(answer).get("result")
    except ValueError:
        return set()
    tools = cast("dict[str, Any]", result).get("tools") if isinstance(result, dict) else None
    found: set[str] = set()
    for tool in cast("list[Any]", tools) if isinstance(tools, list) else []:
        match tool:
            case {"name": str(name), "annotations": {"readOnlyHint": True}}:
                found.add(name)
            case _:
                pass
    return found
