"""Plain requests in wire form, as the direct lane reads them: whatever is not exactly so is the SDK's to look at."""

from functools import lru_cache
from typing import Any, Literal

import msgspec
from starlette.types import Scope

from serena_central.core.client_channel import Level
from serena_central.core.decoding import converted, json_decoder
from serena_central.mcp_server.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
)
from serena_central.mcp_server.sender import ClientInfo
from serena_central.mcp_server.subscriptions import Wanted

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
"""Headers that repeat what the message says."""

PARAMETER = b"mcp-param-"
"""Of headers that repeat arguments."""


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    arguments: dict[str, Any] | None = None
    level: Level | None = None
    notifications: Wanted | None = None
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict[str, Any])


class PlainRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON-RPC request of the direct lane, in wire form."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal[
        "tools/call",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "logging/setLevel",
        "server/discover",
        "subscriptions/listen",
        "ping",
    ]
    params: _Params = msgspec.field(default_factory=_Params)

    @property
    def is_whole(self) -> bool:
        """Whether it has the parameters of its method, and no others."""
        params, method = self.params, self.method
        has_tool = params.name is not None or params.arguments is not None
        return (
            (method == "tools/call" or not has_tool)
            and (method == "logging/setLevel") == (params.level is not None)
            and (method == "subscriptions/listen") == (params.notifications is not None)
        )


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    listChanged: bool = False  # noqa: N815 - the wire's name


class _Info(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    websiteUrl: str | None = None  # noqa: N815 - the wire's name
    icons: list[dict[str, Any]] | None = None


class _Capabilities(msgspec.Struct, forbid_unknown_fields=True):
    """What most clients offer; the SDK reads whatever else there is."""

    roots: _Form | None = None
    sampling: dict[str, dict[str, Any]] | None = None
    elicitation: dict[str, dict[str, Any]] | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    tasks: dict[str, dict[str, Any]] | None = None


class _OpeningParams(msgspec.Struct, forbid_unknown_fields=True):
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
    def can_be_asked(self) -> bool:
        return self.params.capabilities.elicitation is not None

    @property
    def offers_roots(self) -> bool:
        return self.params.capabilities.roots is not None

    @property
    def client(self) -> ClientInfo:
        return ClientInfo(self.params.clientInfo.name, self.params.clientInfo.version)


_decode_opening = json_decoder(Opening).decode


def opening_in(content: bytes) -> Opening | None:
    """None for what the SDK has to look at."""
    try:
        return _decode_opening(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Caller(msgspec.Struct, frozen=True):
    """What is known of the client of a request: by its handshake, or by the request's envelope."""

    version: str
    client: ClientInfo
    offers_roots: bool = False
    """Of the modern era."""
    can_be_asked: bool = True
    """It offers to ask its user something."""


_decode = json_decoder(PlainRequest).decode


def plain_in(content: bytes) -> PlainRequest | None:
    """None for what the SDK has to look at."""
    try:
        return _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def routing_in(scope: Scope) -> list[bytes] | None:
    """The headers that repeat the message, in their order; None where one comes twice, or an argument is repeated."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name.startswith(PARAMETER) or name in found:
            return None
        if name in ROUTING:
            found[name] = value
    return [found[name] for name in ROUTING if name in found]


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
    asks = capabilities.elicitation is not None
    return Caller(version, client, offers_roots=capabilities.roots is not None, can_be_asked=asks)
