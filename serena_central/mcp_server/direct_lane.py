"""The direct lane: plain requests are answered in the task of their HTTP request, without the SDK's streams.

Plain is one `tools/call`, list, `logging/setLevel` or `ping` whose answer needs nothing on its way but progress and
notes: no questions to the client. Everything else goes to the SDK as it came, and so does whatever is not exactly as
the protocol says: all refusals of messages are the SDK's own.
"""

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Scope, Send

from serena_central.core import tracing
from serena_central.core.errors import SerenaCentralError, UnknownProject
from serena_central.core.late_imports import import_to_stay
from serena_central.core.lru import Lru
from serena_central.mcp_server.conversation import ID_HEADER, Exchange, HandshakeConversation
from serena_central.mcp_server.description import (
    CAPABILITIES,
    DISCOVERY_KEPT_MS,
    INSTRUCTIONS,
    LISTS_KEPT_MS,
    SERVER_NAME,
)
from serena_central.mcp_server.direct_reply import DirectReply, HandshakeWire, ModernWire, Wire
from serena_central.mcp_server.errors import error_of, failed_result
from serena_central.mcp_server.listings import Listings
from serena_central.mcp_server.plain_requests import (
    Caller,
    Opening,
    PlainRequest,
    accepts_both,
    caller_in,
    plain_in,
    routing_in,
)
from serena_central.mcp_server.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    ENVELOPE,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    RESERVED,
    SERVER_INFO_KEY,
    STATUS_OF,
)
from serena_central.mcp_server.request_bodies import Body
from serena_central.mcp_server.roots import asking_for_roots
from serena_central.mcp_server.sender import IN_SCOPE, Sender
from serena_central.mcp_server.sse import Message, Write, encoded, event_of, kept_open, send_stream
from serena_central.mcp_server.subscriptions import Subscription, Subscriptions, Wanted
from serena_central.mcp_server.tool_methods import ToolMethods, call_result, notes_for, result_of_era, wire
from serena_central.sessions.manager import SessionManager

ASKS_PERSON = frozenset(("activate_project",))
"""Tools that ask a client something only if it offers to ask its user."""

OF_HANDSHAKE_ERA = frozenset(("ping", "logging/setLevel"))
OF_MODERN_ERA = frozenset(("server/discover", "subscriptions/listen"))
"""Methods of one era: in the other the SDK refuses them."""

PROGRESS = "progressToken"
"""By which a client asks for the progress of a call: an integer or a text."""

MOST_CALLERS = 256
"""Clients of the modern era say the same of themselves in each request; it is checked once."""


class DirectLane:
    """Both eras' plain requests. Belongs to the event loop's thread."""

    def __init__(
        self,
        methods: ToolMethods,
        listings: Listings,
        subscriptions: Subscriptions,
        sessions: SessionManager,
        version: str,
    ) -> None:
        """`version` is the server's."""
        self._methods = methods
        self._listings = listings
        self._subscriptions = subscriptions
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
        if any(key.startswith(RESERVED) for key in request.params.meta):
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
        if request is None or request.method in OF_HANDSHAKE_ERA:
            return False
        caller = self._caller(scope, request)
        if caller is None or (caller.can_be_asked and request.params.name in ASKS_PERSON):
            return False
        if request.method == "subscriptions/listen":
            await self._listen(request, caller, scope[IN_SCOPE], body, send)
            return True
        reply = self._reply(request, body, send, ModernWire())
        await reply.run(lambda: self._answer(request, caller, scope[IN_SCOPE], reply), _status_of)
        return True

    async def _listen(self, request: PlainRequest, caller: Caller, sender: Sender, body: Body, send: Send) -> None:
        """A stream of notices, until its client leaves or the server ends it."""
        wanted = request.params.notifications or Wanted()
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
            self._methods.identify(scope[IN_SCOPE], request.client, {})
        except SerenaCentralError:
            return False
        conversation.version, conversation.info = request.version, request.client
        conversation.can_be_asked, conversation.offers_roots = request.can_be_asked, request.offers_roots
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
        params = request.params
        if type(params.meta.get(PROGRESS, 0)) not in (int, str):
            return None
        if not request.is_whole:
            return None
        if request.method != "tools/call":
            return request
        tool = self._methods.tool(params.name) if params.name is not None else None
        return None if tool is None or (tool.asks_client and tool.name not in ASKS_PERSON) else request

    def _caller(self, scope: Scope, request: PlainRequest) -> Caller | None:
        """The client of a request of the modern era; None if the SDK has something to say about its headers or its
        envelope, or they need more than a look."""
        meta, name = request.params.meta, request.params.name
        version = meta.get(PROTOCOL_VERSION_KEY)
        if not isinstance(version, str) or any(key.startswith(RESERVED) and key not in ENVELOPE for key in meta):
            return None
        routing = [version.encode(), request.method.encode(), *([name.encode()] if name is not None else [])]
        if routing_in(scope) != routing:
            return None
        if name is not None and request.params.arguments and self._methods.schema_with_headers(name) is not None:
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
            result = await self._result(request, caller, sender, reply)
        except Exception as error:  # noqa: BLE001 (the border of a request: error_of logs what is not ours)
            return {"jsonrpc": "2.0", "id": request.id, "error": error_of(error)}
        return {"jsonrpc": "2.0", "id": request.id, "result": self._of_era(request.method, result, caller.version)}

    async def _result(
        self, request: PlainRequest, caller: Caller, sender: Sender, reply: DirectReply
    ) -> dict[str, Any]:
        params = request.params
        if request.method == "ping":
            return {}
        if request.method in LISTS_KEPT_MS:
            session = self._methods.identify(sender, caller.client, params.meta)
            listing = self._listings.of.get(request.method)
            return await (listing(session, sender.connection) if listing else self._methods.listed(session, sender))
        if request.method == "server/discover":
            return wire(
                {"supportedVersions": MODERN_VERSIONS, "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
            )
        if params.level is not None:
            session = self._methods.identify(sender, caller.client, params.meta)
            await self._methods.want_logs(session, sender, params.level)
            return {}
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
            for note in notes_for(sender, answer):
                await reply.tell(note)
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
        kept_ms = DISCOVERY_KEPT_MS if method == "server/discover" else LISTS_KEPT_MS.get(method)
        hints = {} if kept_ms is None else {"ttlMs": kept_ms, "cacheScope": "private"}
        return {**hints, **result, "_meta": {**result.get("_meta", {}), SERVER_INFO_KEY: self._server_info}}


async def _question(sender: Sender, caller: Caller, error: UnknownProject) -> dict[str, Any] | None:
    """For the folders that the client works in, in wire form; None if it is not asked."""
    if not caller.offers_roots:
        return None
    await anyio.to_thread.run_sync(import_to_stay, "mcp_types")
    question = asking_for_roots(sender, error, offered=True)
    return None if question is None else question.model_dump(by_alias=True, mode="json", exclude_none=True)


def _sieved(result: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A result of `tools/call` as a version of the protocol has it."""
    from mcp_types import methods as sdk_methods  # of other servers' answers, which come by the SDK

    return sdk_methods.serialize_server_result("tools/call", caller.version, result)


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
