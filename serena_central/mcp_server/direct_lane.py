"""The direct lane: plain requests are answered in the task of their HTTP request, without the SDK's streams.

Plain is one `tools/call`, `tools/list` or `ping` whose answer needs nothing on its way but progress: no log messages,
no questions to the client. Everything else goes to the SDK as it came, and so does whatever is not exactly as the
protocol says: all refusals of messages are the SDK's own.

The answer is JSON, or an event stream if it takes long or there is progress to tell. A stream keeps the connection in
use: clients and proxies close one on which nothing comes for a minute, and only a client that has had an event can come
back for the rest. Most calls are through before either matters, though all agents ask for progress, so a stream begins,
before the first byte of anything else, with the first news of a call, or after `STREAM_AFTER_S`.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Receive, Scope, Send

from serena_central.core import tracing
from serena_central.core.decoding import converted, from_json, json_decoder
from serena_central.core.errors import SerenaCentralError, UnknownProject
from serena_central.core.late_imports import import_to_stay
from serena_central.core.lru import Lru
from serena_central.core.progress import Listener
from serena_central.mcp_server.conversation import ID_HEADER, Exchange, HandshakeConversation
from serena_central.mcp_server.description import CAPABILITIES, INSTRUCTIONS, LIST_HINTS, SERVER_NAME
from serena_central.mcp_server.errors import error_of, failed_result
from serena_central.mcp_server.progress import ProgressRelay
from serena_central.mcp_server.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    ENVELOPE,
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    RESERVED,
    SERVER_INFO_KEY,
    STATUS_OF,
)
from serena_central.mcp_server.request_bodies import Body
from serena_central.mcp_server.sender import IN_SCOPE, ClientInfo, Sender
from serena_central.mcp_server.tool_methods import ToolMethods, call_result, result_of_era

ATTENDED_AFTER_S = 0.05
"""From then on the connection is looked after. Most answers are sent before, those of language servers too, and spare
the task that does it."""

STREAM_AFTER_S = 5.0
"""An answer after this many seconds comes by an event stream: early enough for clients that wait 10 s for the head of a
response, late enough that hardly any call comes that far."""

PING_S = 15.0
"""Between two comments on a stream that has nothing else to send."""

PING = b": ping\r\n\r\n"

Message = Mapping[str, Any]
"""A JSON-RPC answer."""

Answering = Callable[[], Awaitable[Message]]
"""Makes the answer."""

Headers = Sequence[tuple[bytes, bytes]]

RESUMABLE_SINCE = "2025-11-25"
"""Clients of earlier revisions cannot parse the event without data that tells them where to resume."""

ASKS_PERSON = frozenset(("activate_project",))
"""Tools that ask a client something only if it offers to ask its user."""

PROGRESS = "progressToken"
"""By which a client asks for the progress of a call: an integer or a text."""

MOST_CALLERS = 256
"""Clients of the modern era say the same of themselves in each request; it is checked once."""

ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
"""Headers that repeat what the message says."""

PARAMETER = b"mcp-param-"
"""Of headers that repeat arguments."""


class Wire(Protocol):
    """What the eras do differently on the wire."""

    @property
    def headers(self) -> Headers:
        """Of each response."""
        ...

    def hung_up(self, scope: anyio.CancelScope) -> None:
        """The client has closed the connection; `scope` is around the work."""
        ...

    async def opening(self) -> bytes:
        """How a stream begins."""
        ...

    async def event(self, message: Message | None) -> bytes:
        """The answer, or news of the call, as an event; empty if the call gets no answer."""
        ...


class DirectReply:
    """One response. `scope` is around the work: cancelling it ends the request without an answer."""

    def __init__(
        self, receive: Receive, send: Send, wire: Wire, attendants: TaskGroup, token: int | str | None = None
    ) -> None:
        """`attendants`: whose tasks look after connections. A group of its own would cost each call as much as a lookup
        of a symbol. `token`: by which the client knows its progress; None if it wants to hear of none."""
        self.scope = anyio.CancelScope()
        self._receive = receive
        self._send = send
        self._wire = wire
        self._attendants = attendants
        self._token = token
        self._beside: list[_Attendant] = []
        self._relay: ProgressRelay | None = None
        self._opening = anyio.Lock(fast_acquire=True)
        self._is_stream = False
        self._is_made = False
        self._is_over = False
        self._afterwards: list[Callable[[], None]] = []

    def afterwards(self, function: Callable[[], None]) -> None:
        """Calls it when the reply has been sent, or nothing is to be sent any more: the client need not wait for it."""
        if self._is_over:
            function()
        else:
            self._afterwards.append(function)

    @property
    def on_progress(self) -> Listener | None:
        """Sends news of the call to a client that wants to hear of it."""
        return None if self._token is None else self._report

    async def run(self, answering: Answering, status_of: Callable[[Message], int]) -> None:
        """Sends what `answering` makes. What a closed connection means is up to the wire."""
        try:
            await self._run(answering, status_of)
        finally:
            self._is_over = True
            for function in self._afterwards:
                function()

    async def _run(self, answering: Answering, status_of: Callable[[Message], int]) -> None:
        message: Message | None = None
        later = asyncio.get_running_loop().call_later(ATTENDED_AFTER_S, self._begin_to_attend)
        try:
            with self.scope:
                message = await answering()
        finally:
            later.cancel()
            self._is_made = True
            beside, self._beside, self._relay = self._beside, [], None  # they know each other, and the answer
            for attendant in beside:
                attendant.cancel()
            for attendant in beside:
                await attendant.end()
        if message is None or self._is_stream:
            # A cancelled request ends without an answer (MCP, "Cancellation"), as a stream can.
            await self._begin_stream()
            await self._send({"type": "http.response.body", "body": await self._wire.event(message)})
            return
        body = encoded(message)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self._wire.headers,
        ]
        await self._send({"type": "http.response.start", "status": status_of(message), "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _begin_to_attend(self) -> None:
        self._start_beside(self._attend)

    def _start_beside(self, function: Callable[[], Awaitable[None]]) -> None:
        attendant = _Attendant(function, self.scope)
        try:
            self._attendants.start_soon(attendant.run)
        except RuntimeError:  # the server is stopping: what is being answered ends soon
            return
        self._beside.append(attendant)

    def _report(self, message: str, part: float | None) -> None:
        if self._is_made:
            return  # what a call has begun may go on
        if self._relay is None:
            self._relay = ProgressRelay(self._notify)
            self._start_beside(self._relay.run)
        self._relay.report(message, part)

    async def _notify(self, value: float, total: float | None, message: str | None) -> None:
        said = {"progressToken": self._token, "progress": value, "total": total, "message": message}
        params = {key: value for key, value in said.items() if value is not None}
        await self._open_stream()
        event = await self._wire.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def _attend(self) -> None:
        """Looks after the connection while the answer is made."""
        with anyio.move_on_after(STREAM_AFTER_S):
            return await self._closed()
        await self._open_stream()
        while True:
            with anyio.move_on_after(PING_S):
                return await self._closed()
            await self._send({"type": "http.response.body", "body": PING, "more_body": True})

    async def _closed(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._wire.hung_up(self.scope)

    async def _open_stream(self) -> None:
        async with self._opening:
            if not self._is_stream:
                await self._begin_stream()
                opening = await self._wire.opening()
                await self._send({"type": "http.response.body", "body": opening, "more_body": True})

    async def _begin_stream(self) -> None:
        if self._is_stream:
            return
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache, no-transform"),
            (b"connection", b"keep-alive"),
            (b"x-accel-buffering", b"no"),
            *self._wire.headers,
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._is_stream = True


class _Attendant:
    """Runs beside the work for one reply, as a task of a group that all share: what fails there fails the reply."""

    def __init__(self, attend: Callable[[], Awaitable[None]], work: anyio.CancelScope) -> None:
        self._attend = attend
        self._work = work
        self._scope = anyio.CancelScope()
        self._has_ended = anyio.Event()
        self._failure: Exception | None = None

    async def run(self) -> None:
        try:
            with self._scope:
                await self._attend()
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:  # all of them are
                raise
            self._fail(RuntimeError("something cancelled what looks after a connection"))  # not its reply's end
        except Exception as error:  # noqa: BLE001 (raised by `stop`)
            self._fail(error)
        finally:
            self._has_ended.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._work.cancel()

    def cancel(self) -> None:
        self._scope.cancel()

    async def end(self) -> None:
        """Waits until it has ended. Raises what failed."""
        await self._has_ended.wait()
        if self._failure is not None:
            raise self._failure


class ModernWire:
    """MCP 2026-07-28: who closes the connection cancels the request; streams cannot be resumed."""

    headers: Headers = ()

    def hung_up(self, scope: anyio.CancelScope) -> None:
        scope.cancel()

    async def opening(self) -> bytes:
        return PING

    async def event(self, message: Message | None) -> bytes:
        return b"" if message is None else event_of(encoded(message))


class HandshakeWire:
    """One request of a conversation. Its stream can be resumed, by clients that know how."""

    def __init__(self, conversation: HandshakeConversation, exchange: Exchange, request: str, version: str) -> None:
        self.headers: Headers = [(ID_HEADER, conversation.id.encode("ascii"))]
        self._transport = conversation.transport
        """None while the SDK is not needed; what is not sent through it can't be resumed."""
        self._exchange = exchange
        self._request = request
        self._version = version
        exchange.resumable = False

    def hung_up(self, scope: anyio.CancelScope) -> None:
        """The exchange has noticed, and ends what only reads; what changes something goes on."""

    async def opening(self) -> bytes:
        if self._version < RESUMABLE_SINCE or self._transport is None:
            return PING
        from serena_central.mcp_server.resumption import RETRY_MS

        event_id = await self._transport.log.store_event(self._request, None)
        self._exchange.resumable = True
        return f"id: {event_id}\r\nretry: {RETRY_MS}\r\ndata: \r\n\r\n".encode("ascii")

    async def event(self, message: Message | None) -> bytes:
        if self._transport is None:
            return b"" if message is None else event_of(encoded(message))
        if message is None:
            await self._transport.end_stream(self._request)
            return b""
        data = encoded(message)
        event_id = await self._transport.deliver(self._request, json.loads(data))
        self._exchange.resumable = True  # it has an id to come back with, in any version
        return event_of(data, event_id)


def event_of(data: bytes, event_id: str = "") -> bytes:
    """An encoded message as an event of a stream."""
    number = b"id: " + event_id.encode("ascii") + b"\r\n" if event_id else b""
    return number + b"event: message\r\ndata: " + data + b"\r\n\r\n"


def encoded(message: Message) -> bytes:
    """A message as JSON. Halves of surrogate pairs, which UTF-8 does not have, are escaped."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":"), default=from_json).encode("ascii")


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    arguments: dict[str, Any] | None = None
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict[str, Any])


class PlainRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON-RPC request of the direct lane, in wire form."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call", "tools/list", "ping"]
    params: _Params = msgspec.field(default_factory=_Params)


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    listChanged: bool = False  # noqa: N815 - the wire's name


class _Info(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    websiteUrl: str | None = None  # noqa: N815 - the wire's name


class _Capabilities(msgspec.Struct, forbid_unknown_fields=True):
    """What most clients offer; the SDK reads whatever else there is."""

    roots: _Form | None = None
    sampling: dict[str, dict[str, Any]] | None = None
    elicitation: dict[str, dict[str, Any]] | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None


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


class DirectLane:
    """Both eras' plain requests. Belongs to the event loop's thread."""

    def __init__(self, methods: ToolMethods, version: str) -> None:
        """`version` is the server's."""
        self._methods = methods
        self._server_info = {"name": SERVER_NAME, "version": version}
        self._callers: Lru[tuple[str, bytes, bytes], Caller] = Lru(MOST_CALLERS)
        self._attendants: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the tasks that look after connections, until it is cancelled."""
        async with anyio.create_task_group() as self._attendants:
            task_status.started()
            await anyio.sleep_forever()

    def _reply(self, request: PlainRequest, body: Body, send: Send, wire: Wire) -> DirectReply:
        assert self._attendants is not None, "requests need run()"
        return DirectReply(body.receive, send, wire, self._attendants, request.params.meta.get(PROGRESS))

    async def serve_handshake(
        self, conversation: HandshakeConversation, exchange: Exchange, scope: Scope, body: Body, send: Send
    ) -> bool:
        """Serves a request of a conversation, or leaves it as it is and returns False."""
        version = conversation.version
        if version is None or conversation.log_level is not None:
            return False
        request = self._plain(scope, body.content)
        if request is None or any(key.startswith(RESERVED) for key in request.params.meta):
            return False
        if conversation.can_be_asked and request.params.name in ASKS_PERSON:
            return False
        key, caller = str(request.id), Caller(version, conversation.info)
        async with conversation.turns.holding([key]):
            if conversation.is_over:
                return False  # the transports refuse it
            wire = HandshakeWire(conversation, exchange, key, version)
            reply = self._reply(request, body, send, wire)
            conversation.direct[key] = reply.scope
            if request.method != "tools/call" or self._methods.only_reads(request.params.name or ""):
                exchange.begin(key, reply.scope)
            try:
                await reply.run(lambda: self._answer(request, caller, scope[IN_SCOPE], reply), _ok)
            finally:
                exchange.end(key)
                del conversation.direct[key]
        return True

    async def serve_modern(self, scope: Scope, body: Body, send: Send) -> bool:
        """Serves a request of the modern era, or leaves it as it is and returns False."""
        request = self._plain(scope, body.content)
        if request is None or request.method == "ping":
            return False
        caller = self._caller(scope, request)
        if caller is None or (caller.can_be_asked and request.params.name in ASKS_PERSON):
            return False
        reply = self._reply(request, body, send, ModernWire())
        await reply.run(lambda: self._answer(request, caller, scope[IN_SCOPE], reply), _status_of)
        return True

    async def open(self, conversation: HandshakeConversation, request: Opening, scope: Scope, send: Send) -> bool:
        """Answers `initialize`; False, with nothing sent, where the SDK has something to say about it."""
        if tracing.enabled() or not _accepts(scope):
            return False
        try:
            self._methods.identify(scope[IN_SCOPE], request.client, {})
        except SerenaCentralError:
            return False
        conversation.version, conversation.info = request.version, request.client
        conversation.can_be_asked = request.can_be_asked
        result = {
            "capabilities": CAPABILITIES,
            "instructions": INSTRUCTIONS,
            "protocolVersion": request.version,
            "serverInfo": self._server_info,
        }
        body = encoded({"jsonrpc": "2.0", "id": request.id, "result": result})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (ID_HEADER, conversation.id.encode("ascii")),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return True

    def _plain(self, scope: Scope, content: bytes) -> PlainRequest | None:
        """The message, if it is for this lane as far as headers, era and conversation don't matter."""
        if tracing.enabled() or not _accepts(scope):  # the SDK makes the spans
            return None
        try:
            request = _decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        params = request.params
        if type(params.meta.get(PROGRESS, 0)) not in (int, str):
            return None
        if request.method != "tools/call":
            return request if params.name is None and params.arguments is None else None
        tool = self._methods.tool(params.name) if params.name is not None else None
        return None if tool is None or (tool.asks_client and tool.name not in ASKS_PERSON) else request

    def _caller(self, scope: Scope, request: PlainRequest) -> "Caller | None":
        """The client of a request of the modern era; None if the SDK has something to say about its headers or its
        envelope, or they need more than a look."""
        meta, name = request.params.meta, request.params.name
        version = meta.get(PROTOCOL_VERSION_KEY)
        if not isinstance(version, str) or any(key.startswith(RESERVED) and key not in ENVELOPE for key in meta):
            return None
        routing = [version.encode(), request.method.encode(), *([name.encode()] if name is not None else [])]
        if _routing(scope) != routing:
            return None
        if name is not None and request.params.arguments and self._methods.schema_with_headers(name) is not None:
            return None
        info, capabilities = meta.get(CLIENT_INFO_KEY), meta.get(CLIENT_CAPABILITIES_KEY)
        key = version, msgspec.json.encode(info), msgspec.json.encode(capabilities)
        caller = self._callers.get(key)
        if caller is None:
            envelope = {key: meta[key] for key in ENVELOPE if key in meta}
            caller = _checked(version, envelope)
            if caller is not None:
                self._callers[key] = caller
        return caller

    async def _answer(self, request: PlainRequest, caller: "Caller", sender: Sender, reply: DirectReply) -> Message:
        """The answer as a JSON-RPC message."""
        try:
            result = await self._result(request, caller, sender, reply)
        except Exception as error:  # noqa: BLE001 (the border of a request: error_of logs what is not ours)
            return {"jsonrpc": "2.0", "id": request.id, "error": error_of(error)}
        return {"jsonrpc": "2.0", "id": request.id, "result": self._of_era(request.method, result, caller.version)}

    async def _result(
        self, request: PlainRequest, caller: "Caller", sender: Sender, reply: DirectReply
    ) -> dict[str, Any]:
        params = request.params
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            session = self._methods.identify(sender, caller.client, params.meta)
            return await self._methods.listed(session, sender)
        name, arguments = params.name or "", params.arguments or {}
        try:
            session = self._methods.identify(sender, caller.client, params.meta)
            answer = await self._methods.answer(
                session,
                sender,
                name,
                arguments,
                request_id=request.id,
                on_progress=reply.on_progress,
                waiting=reply,
            )
        except UnknownProject as error:
            question = await _question(sender, caller, error)
            if question is None:
                return failed_result(error)
            return _sieved(question, caller)
        except Exception as error:  # noqa: BLE001 (the border of a call: failed_result logs what is not ours)
            return failed_result(error)
        result = call_result(answer, self._methods.tool(name), raw=True)
        # What our own tools answer is as the protocol has it; foreign blocks the SDK has to look at.
        return result if answer.content is None else _sieved(result, caller)

    def _of_era(self, method: str, result: dict[str, Any], version: str) -> dict[str, Any]:
        """The result with what the SDK adds to it, or takes from it."""
        if version not in MODERN_VERSIONS:
            return result_of_era(result, version)
        hints = LIST_HINTS if method == "tools/list" else {}
        return {**hints, **result, "_meta": {**result.get("_meta", {}), SERVER_INFO_KEY: self._server_info}}


def _routing(scope: Scope) -> list[bytes] | None:
    """The headers that repeat the message, in their order; None where one comes twice, or an argument is repeated."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name.startswith(PARAMETER) or name in found:
            return None
        if name in ROUTING:
            found[name] = value
    return [found[name] for name in ROUTING if name in found]


def _accepts(scope: Scope) -> bool:
    """Whether the client takes an answer in both forms, which the protocol demands."""
    return _takes_both(next((value for name, value in scope["headers"] if name == b"accept"), b""))


@lru_cache(64)
def _takes_both(accept: bytes) -> bool:
    kinds = {kind.partition(b";")[0].strip().lower() for kind in accept.split(b",")}
    any_kind = b"*/*" in kinds
    json = any_kind or not kinds.isdisjoint((b"application/json", b"application/*"))
    return json and (any_kind or not kinds.isdisjoint((b"text/event-stream", b"text/*")))


def _checked(version: str, envelope: dict[str, Any]) -> Caller | None:
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


async def _question(sender: Sender, caller: Caller, error: UnknownProject) -> dict[str, Any] | None:
    """For the folders that the client works in, in wire form; None if it is not asked."""
    if not caller.offers_roots:
        return None
    roots = await anyio.to_thread.run_sync(import_to_stay, "serena_central.mcp_server.roots")
    question = roots.asking_for_roots(sender, error, offered=True)
    return None if question is None else question.model_dump(by_alias=True, mode="json", exclude_none=True)


def _sieved(result: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A result of `tools/call` as a version of the protocol has it."""
    from mcp_types import methods as sdk_methods  # of other servers' answers, which come by the SDK

    return sdk_methods.serialize_server_result("tools/call", caller.version, result)


def _ok(_message: Message) -> int:
    return 200


def _status_of(message: Message) -> int:
    """The modern era tells errors of the protocol by the status, too."""
    return STATUS_OF.get(message["error"]["code"], 200) if "error" in message else 200
