"""Plain requests in wire form, as the direct lane reads them: whatever is not exactly so is the SDK's to look at."""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from starlette.types import Scope

from serena_central.core.client_channel import Level
from serena_central.core.decoding import converted, json_decoder
from serena_central.mcp_server.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    PROGRESS,
    RESERVED,
)
from serena_central.mcp_server.sender import ClientInfo
from serena_central.mcp_server.subscriptions import Wanted

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
"""Headers that repeat what the message says."""

PARAMETER = b"mcp-param-"
"""Of headers that repeat arguments."""


class Params(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters that each method has."""

    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class AskingParams(Params, kw_only=True):
    """Of a method that may be answered by questions. A client of the modern era sends its request again with these."""

    responses: dict[str, "Response"] | None = msgspec.field(name="inputResponses", default=None)
    state: str | None = msgspec.field(name="requestState", default=None)

    @property
    def target(self) -> str:
        """What it is about, which a header repeats."""
        raise NotImplementedError

    @property
    def is_sent_again(self) -> bool:
        return self.responses is not None or self.state is not None

    @property
    def given(self) -> dict[str, Any]:
        """The responses, in wire form."""
        return msgspec.to_builtins(self.responses or {})


class CallParams(AskingParams, kw_only=True):
    name: str
    arguments: dict[str, Any] | None = None

    @property
    def target(self) -> str:
        return self.name


class PromptParams(AskingParams, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None

    @property
    def target(self) -> str:
        return self.name


class ReadParams(AskingParams, kw_only=True):
    uri: str

    @property
    def target(self) -> str:
        return self.uri


class ResourceParams(Params, kw_only=True):
    uri: str


class LevelParams(Params, kw_only=True):
    level: Level


class ListenParams(Params, kw_only=True):
    notifications: Wanted


class _Root(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    uri: Annotated[str, msgspec.Meta(pattern="^file:///")]
    name: str | None = None


class Response(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a client answers to a question for its user or its roots; what its model says is the SDK's to look at."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, str | int | float | bool | list[str] | None] | None = None
    roots: list[_Root] | None = None

    @property
    def is_whole(self) -> bool:
        return (self.action is None) != (self.roots is None) and (self.content is None or self.action is not None)


class _Reference(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag_field="type"):
    """What an argument belongs to."""


class _PromptReference(_Reference, tag="ref/prompt"):
    name: str
    title: str | None = None


class _TemplateReference(_Reference, tag="ref/resource"):
    uri: str


class _Argument(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str


class _Known(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    arguments: dict[str, str] | None = None


class CompletionParams(Params, kw_only=True):
    ref: _PromptReference | _TemplateReference
    argument: _Argument
    context: _Known | None = None


_PARAMS: Mapping[str, type[Params]] = {
    "tools/call": CallParams,
    "tools/list": Params,
    "prompts/list": Params,
    "prompts/get": PromptParams,
    "resources/list": Params,
    "resources/templates/list": Params,
    "resources/read": ReadParams,
    "resources/subscribe": ResourceParams,
    "resources/unsubscribe": ResourceParams,
    "completion/complete": CompletionParams,
    "logging/setLevel": LevelParams,
    "server/discover": Params,
    "subscriptions/listen": ListenParams,
    "ping": Params,
}
"""By method."""


class PlainRequest(NamedTuple):
    """A JSON-RPC request of the direct lane."""

    id: int | str
    method: str
    params: Params


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    listChanged: bool = False  # noqa: N815 - the wire's name


class _Info(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    websiteUrl: str | None = None  # noqa: N815 - the wire's name
    icons: list[dict[str, Any]] | None = None


class _Capabilities(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What most clients offer; the SDK reads whatever else there is."""

    roots: _Form | None = None
    sampling: dict[str, dict[str, Any]] | None = None
    elicitation: dict[str, dict[str, Any]] | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    tasks: dict[str, dict[str, Any]] | None = None


class _OpeningParams(Params, kw_only=True):
    protocolVersion: str  # noqa: N815 - the wire's name
    capabilities: _Capabilities
    clientInfo: _Info  # noqa: N815 - the wire's name


class Opening(msgspec.Struct, forbid_unknown_fields=True):
    """An `initialize` request of the usual form."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["initialize"]
    params: _OpeningParams

    @property
    def version(self) -> str:
        """Of the protocol, as negotiated."""
        asked = self.params.protocolVersion
        return asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]

    @property
    def offered(self) -> dict[str, Any]:
        """Its client's capabilities, in wire form."""
        return msgspec.to_builtins(self.params.capabilities)

    @property
    def client(self) -> ClientInfo:
        return ClientInfo(self.params.clientInfo.name, self.params.clientInfo.version)


_decode_opening = json_decoder(Opening).decode


def opening_in(content: bytes) -> Opening | None:
    """None for what the SDK has to look at."""
    try:
        opening = _decode_opening(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    meta = opening.params.meta
    if any(key.startswith(RESERVED) for key in meta) or type(meta.get(PROGRESS, 0)) not in (int, str):
        return None
    return opening


class Caller(msgspec.Struct, frozen=True):
    """What is known of the client of a request: by its handshake, or by the request's envelope."""

    version: str
    client: ClientInfo
    offered: Mapping[str, Any] = {}
    """Its capabilities, in wire form."""


_decode = json_decoder(_Message).decode
_decoders = {method: json_decoder(kind).decode for method, kind in _PARAMS.items()}


def plain_in(content: bytes) -> PlainRequest | None:
    """None for what the SDK has to look at."""
    try:
        message = _decode(content)
        decode = _decoders.get(message.method)
        if decode is None:
            return None
        params = decode(message.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(params, AskingParams) and not all(one.is_whole for one in (params.responses or {}).values()):
        return None
    return PlainRequest(message.id, message.method, params)


def routing_in(scope: Scope) -> list[bytes] | None:
    """The headers that repeat the message, in their order; None where one comes twice, or an argument is repeated."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name.startswith(PARAMETER) or name in found:
            return None
        if name in ROUTING:
            found[name] = value
    return [found[name] for name in ROUTING if name in found]


def in_header(text: str) -> bytes:
    """A value as a header repeats it: in Base64 where it is more than visible ASCII."""
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if text.isascii() and text.isprintable() and text == text.strip() and not looks_encoded:
        return text.encode()
    return b"=?base64?%s?=" % b64encode(text.encode())


def accepts_both(scope: Scope) -> bool:
    """Whether the client takes an answer in both forms, which the protocol demands."""
    return _takes(_accept_in(scope)) == (True, True)


def accepts_stream(scope: Scope) -> bool:
    """Whether the client takes an event stream."""
    return _takes(_accept_in(scope))[1]


def _accept_in(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"accept"), b"")


@lru_cache(64)
def _takes(accept: bytes) -> tuple[bool, bool]:
    """Whether JSON, whether event streams."""
    kinds = {kind.partition(b";")[0].strip().lower() for kind in accept.split(b",")}
    json, stream = ((b"application/json", b"application/*"), (b"text/event-stream", b"text/*"))
    any_kind = b"*/*" in kinds
    return any_kind or not kinds.isdisjoint(json), any_kind or not kinds.isdisjoint(stream)


def caller_in(version: str, envelope: dict[str, Any]) -> Caller | None:
    """The client that an envelope of the usual form describes; None where the SDK has to look at it."""
    if version not in MODERN_VERSIONS or CLIENT_CAPABILITIES_KEY not in envelope:
        return None
    try:
        capabilities = converted(envelope[CLIENT_CAPABILITIES_KEY], _Capabilities)
        info = converted(envelope.get(CLIENT_INFO_KEY), _Info | None)
    except msgspec.ValidationError:
        return None
    client = ClientInfo(info.name, info.version) if info else ClientInfo()
    return Caller(version, client, msgspec.to_builtins(capabilities))
