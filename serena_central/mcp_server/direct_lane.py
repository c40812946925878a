"""The direct lane: plain requests are answered in the task of their HTTP request, without the SDK's streams.

Plain is every request that is exactly as the protocol says. Whatever else comes goes to the SDK as it came: all
refusals of messages are the SDK's own.
"""

import logging
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Scope, Send

from serena_central.core import tracing
from serena_central.core.client_channel import LEVELS, connected_to
from serena_central.core.errors import ClientInputRequired, SerenaCentralError
from serena_central.core.lru import Lru
from serena_central.mcp_server.call_channel import input_required
from serena_central.mcp_server.content_methods import ContentMethods
from serena_central.mcp_server.conversation import ID_HEADER, Exchange, HandshakeConversation
from serena_central.mcp_server.description import (
    CAPABILITIES,
    INSTRUCTIONS,
    KEPT_MS,
    SERVER_NAME,
    CacheableMethod,
)
from serena_central.mcp_server.direct_channel import DirectChannel
from serena_central.mcp_server.direct_reply import DirectReply, HandshakeWire, ModernWire, Wire
from serena_central.mcp_server.errors import RequestRefused, error_of
from serena_central.mcp_server.plain_requests import (
    AskingParams,
    Caller,
    CallParams,
    LevelParams,
    ListenParams,
    Opening,
    PlainRequest,
    accepts_both,
    caller_in,
    in_header,
    plain_in,
    routing_in,
)
from serena_central.mcp_server.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    ENVELOPE,
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    PROGRESS,
    PROTOCOL_VERSION_KEY,
    RESERVED,
    SERVER_INFO_KEY,
    STATUS_OF,
    result_of_era,
    wire,
)
from serena_central.mcp_server.request_bodies import Body
from serena_central.mcp_server.request_state import Answers, RequestStates, identity_of_request
from serena_central.mcp_server.sender import IN_SCOPE, Sender
from serena_central.mcp_server.sse import Message, Write, encoded, event_of, kept_open, send_stream
from serena_central.mcp_server.subscriptions import Subscription, Subscriptions, Wanted
from serena_central.mcp_server.tool_methods import CallRequest, ToolMethods, call_result
from serena_central.sessions.manager import SessionManager
from serena_central.tools.answer import Answer

OF_HANDSHAKE_ERA = frozenset(("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"))
OF_MODERN_ERA = frozenset(("server/discover", "subscriptions/listen"))
"""Methods of one era: in the other the SDK refuses them."""

MAY_BE_FOREIGN = frozenset(("resources/read", "prompts/get", "completion/complete"))
"""Methods whose results other servers may have made; tools say it of each answer."""

MOST_CALLERS = 256
"""Clients of the modern era say the same of themselves in each request; it is checked once."""


logger = logging.getLogger(__name__)


class DirectLane:
    """Both eras' plain requests. Belongs to the event loop's thread."""

    def __init__(
        self,
        methods: ToolMethods,
        contents: ContentMethods,
        subscriptions: Subscriptions,
        states: RequestStates,
        sessions: SessionManager,
        version: str,
    ) -> None:
        """`version` is the server's."""
        self._methods = methods
        self._contents = contents
        self._subscriptions = subscriptions
        self._states = states
        self._sessions = sessions
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
        if version is None:
            return False
        request = self._plain(scope, body.content)
        if request is None or request.method in OF_MODERN_ERA:
            return False
        params = request.params
        if any(key.startswith(RESERVED) for key in params.meta):
            return False
        if isinstance(params, AskingParams) and params.is_sent_again:
            return False
        key, caller = str(request.id), Caller(version, conversation.info, conversation.offered)
        async with conversation.turns.holding([key]):
            if conversation.is_over:
                return False  # the transports refuse it
            wire = HandshakeWire(conversation, exchange, key, version)
            reply = self._reply(request, body, send, wire)
            conversation.direct[key] = reply.scope
            if not isinstance(params, CallParams) or self._methods.only_reads(params.name):
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
        if request is None or request.method in OF_HANDSHAKE_ERA:
            return False
        caller = self._caller(scope, request)
        if caller is None:
            return False
        if isinstance(request.params, ListenParams):
            await self._listen(request, request.params.notifications, caller, scope[IN_SCOPE], body, send)
            return True
        reply = self._reply(request, body, send, ModernWire())
        await reply.run(lambda: self._answer(request, caller, scope[IN_SCOPE], reply), _status_of)
        return True

    async def _listen(
        self, request: PlainRequest, wanted: Wanted, caller: Caller, sender: Sender, body: Body, send: Send
    ) -> None:
        """A stream of notices, until its client leaves or the server ends it."""
        async with AsyncExitStack() as stack:
            try:
                session = self._methods.identify(sender, caller.client, request.params.meta)
                self._sessions.check_alive(session)
                stack.enter_context(self._sessions.held(session))
                opening = self._subscriptions.opened(session, request.id, wanted)
                subscription = await stack.enter_async_context(opening)
            except Exception as error:  # noqa: BLE001 (the border of a request: error_of logs what is not ours)
                refusal = {"jsonrpc": "2.0", "id": request.id, "error": error_of(error)}
                await self._reply(request, body, send, ModernWire()).run(partial(_as_it_is, refusal), _status_of)
                return
            result = self._of_era(request.method, wire({"_meta": subscription.meta}), caller.version)
            last = {"jsonrpc": "2.0", "id": request.id, "result": result}
            await send_stream(body.receive, send, (), partial(_follow, subscription, last))

    async def open(self, conversation: HandshakeConversation, request: Opening, scope: Scope, send: Send) -> bool:
        """Answers `initialize`; False, with nothing sent, where the SDK has something to say about it."""
        if tracing.enabled() or not accepts_both(scope):
            return False
        try:
            self._methods.identify(scope[IN_SCOPE], request.client, request.params.meta)
        except SerenaCentralError:
            return False
        conversation.version, conversation.info = request.version, request.client
        conversation.offered = request.offered
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
        if tracing.enabled() or not accepts_both(scope):  # the SDK makes the spans
            return None
        request = plain_in(content)
        if request is None:
            return None
        return request if type(request.params.meta.get(PROGRESS, 0)) in (int, str) else None

    def _caller(self, scope: Scope, request: PlainRequest) -> Caller | None:
        """The client of a request of the modern era; None if the SDK has something to say about its headers or its
        envelope, or they need more than a look."""
        params = request.params
        meta, version = params.meta, params.meta.get(PROTOCOL_VERSION_KEY)
        known = ENVELOPE if meta.get(LOG_LEVEL_KEY, LEVELS[0]) not in LEVELS else (*ENVELOPE, LOG_LEVEL_KEY)
        if not isinstance(version, str) or any(key.startswith(RESERVED) and key not in known for key in meta):
            return None
        target = (in_header(params.target),) if isinstance(params, AskingParams) else ()
        if routing_in(scope) != [version.encode(), request.method.encode(), *target]:
            return None
        if isinstance(params, CallParams) and params.arguments and self._methods.schema_with_headers(params.name):
            return None
        info, capabilities = meta.get(CLIENT_INFO_KEY), meta.get(CLIENT_CAPABILITIES_KEY)
        key = version, msgspec.json.encode(info), msgspec.json.encode(capabilities)
        caller = self._callers.get(key)
        if caller is None:
            envelope = {key: meta[key] for key in ENVELOPE if key in meta}
            caller = caller_in(version, envelope)
            if caller is not None:
                self._callers[key] = caller
        return caller

    async def _answer(self, request: PlainRequest, caller: Caller, sender: Sender, reply: DirectReply) -> Message:
        """The answer as a JSON-RPC message."""
        try:
            try:
                result = await self._result(request, caller, sender, reply)
            except ClientInputRequired as error:
                result = input_required(error, self._states, _identity(request, sender))
        except Exception as error:  # noqa: BLE001 (the border of a request: error_of logs what is not ours)
            return {"jsonrpc": "2.0", "id": request.id, "error": error_of(error)}
        return {"jsonrpc": "2.0", "id": request.id, "result": self._of_era(request.method, result, caller.version)}

    async def _result(
        self, request: PlainRequest, caller: Caller, sender: Sender, reply: DirectReply
    ) -> dict[str, Any]:
        method, params = request.method, request.params
        if method == "ping":
            return {}
        if method == "server/discover":
            return wire(
                {"supportedVersions": MODERN_VERSIONS, "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
            )
        channel = DirectChannel(sender, caller, params, self._earlier(request, sender), reply)
        if isinstance(params, CallParams):
            call = CallRequest(caller.client, params.name, params.arguments or {}, params.meta, request.id)
            answer = await self._methods.called(call, channel, on_progress=reply.on_progress, waiting=reply)
            if not isinstance(answer, Answer):
                return answer
            result = call_result(answer, self._methods.tool(params.name), raw=True)
            # What our own tools answer is as the protocol has it; foreign blocks the SDK has to look at.
            is_ours = answer.content is None and answer.passed is None
            return result if is_ours else _sieved(result, method, caller)
        session = self._methods.identify(sender, caller.client, params.meta)
        if isinstance(params, LevelParams):
            await self._methods.want_logs(session, sender, params.level)
            return {}
        if method == "tools/list":
            return await self._methods.listed(session, sender)
        with connected_to(channel):
            result = await self._contents.of[method](session, sender.connection, msgspec.to_builtins(params))
        is_foreign = method in MAY_BE_FOREIGN and self._contents.pass_on(session)
        return _sieved(result, method, caller) if is_foreign else result

    def _earlier(self, request: PlainRequest, sender: Sender) -> Answers:
        params = request.params
        if not isinstance(params, AskingParams) or params.state is None:
            return {}
        return self._states.opened(params.state, _identity(request, sender))

    def _of_era(self, method: str, result: dict[str, Any], version: str) -> dict[str, Any]:
        """The result with what the SDK adds to it, or takes from it."""
        if version not in MODERN_VERSIONS:
            return result_of_era(result, version)
        hints = _hints(method) if result.get("resultType") == "complete" else {}
        return {**hints, **result, "_meta": {**result.get("_meta", {}), SERVER_INFO_KEY: self._server_info}}


def _identity(request: PlainRequest, sender: Sender) -> bytes:
    return identity_of_request(request.method, msgspec.to_builtins(request.params), sender.credential)


def _sieved(result: dict[str, Any], method: str, caller: Caller) -> dict[str, Any]:
    """A result with foreign parts as a version of the protocol has it."""
    from mcp_types import methods as sdk_methods  # of other servers' answers, which come by the SDK

    try:
        return sdk_methods.serialize_server_result(method, caller.version, {**_hints(method), **result})
    except ValueError as error:
        logger.exception("an answer to %s is not as the protocol says", method)
        raise RequestRefused("Handler returned an invalid result", code=INTERNAL_ERROR) from error


def _hints(method: str) -> dict[str, Any]:
    """How long clients of the modern era may keep a result."""
    kept_ms = KEPT_MS.get(cast("CacheableMethod", method))
    return {} if kept_ms is None else {"ttlMs": kept_ms, "cacheScope": "private"}


async def _follow(subscription: Subscription, last: Message, write: Write) -> None:
    await write(event_of(encoded(subscription.acknowledgement)))
    while (notice := await kept_open(write, subscription.next)) is not None:
        await write(event_of(encoded(notice)))
    await write(event_of(encoded(last)))


async def _as_it_is(message: Message) -> Message:
    return message


def _ok(_message: Message) -> int:
    return 200


def _status_of(message: Message) -> int:
    """The modern era tells errors of the protocol by the status, too."""
    return STATUS_OF.get(message["error"]["code"], 200) if "error" in message else 200
