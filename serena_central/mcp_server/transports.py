"""The conversations of the handshake era, from `initialize` to DELETE. Each gets the SDK's transport if it needs it.

Owns their ids, notices when a client aborts a call, closes its stream or disconnects, and resumes a conversation
whose id is from before a restart. What a message means is the adapter's business; who may still call is the
session manager's.
"""

import logging
from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.abc
import msgspec
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import credential_of
from serena_central.core.errors import ClientCannotAnswer, SessionNotFound, SessionTerminated, TooManySessions
from serena_central.core.periodic import repeat
from serena_central.core.rest import rest
from serena_central.core.running_time import running_time
from serena_central.mcp_server.batches import serve_batch
from serena_central.mcp_server.conversation import (
    ID_HEADER,
    Exchange,
    HandshakeConversation,
    Opening,
    Replay,
    accept,
    begin_exchange,
    id_in,
    refuse,
)
from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.event_log import STANDING
from serena_central.mcp_server.plain_requests import accepts_stream, opening_in
from serena_central.mcp_server.protocol import INITIALIZED, ROOTS_CHANGED
from serena_central.mcp_server.request_bodies import MOST_MESSAGES, Body, Head, body_of
from serena_central.mcp_server.roots import ASKING_S, KEY, METHOD, folder_in_answers
from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.sender import IN_SCOPE, Sender
from serena_central.sessions.manager import SessionManager

if TYPE_CHECKING:
    from serena_central.mcp_server.adapter import Adapter
    from serena_central.mcp_server.resumption import ResumableTransport

logger = logging.getLogger(__name__)

_LAST_EVENT = b"last-event-id"

_HAS_BATCHES = "2025-03-26"

_INITIALIZED = b'{"jsonrpc":"2.0","method":"%s"}' % INITIALIZED.encode("ascii")


class TransportPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    stream_grace_s: float = 30
    """A client that reconnects its stream is back within a few seconds."""
    check_every_s: float = 5


class Openings(Protocol):
    """Remembers how conversations began, across restarts of the server. Bodies are JSON-RPC `initialize` requests."""

    def remember(self, conversation_id: str, session_id: str, body: bytes) -> None: ...
    def recall(self, conversation_id: str, credential: str) -> Awaitable[bytes | None]: ...
    def forget(self, conversation_id: str, session_id: str) -> None: ...


class _WasLeft(Exception):
    """The client closed the conversation while one of its requests waited for a transport."""


class HandshakeTransports:
    """All conversations of the handshake era, by the id that the client carries."""

    def __init__(
        self,
        sdk: SdkLane,
        *,
        sessions: SessionManager,
        openings: Openings | None = None,
        policy: TransportPolicy | None = None,
        direct: DirectLane | None = None,
    ) -> None:
        """`direct` serves what it can; all else goes through `sdk`."""
        self._sdk = sdk
        self._direct = direct
        self._sessions = sessions
        self._openings = openings
        self._policy = policy or TransportPolicy()
        self._known: dict[str, HandshakeConversation] = {}
        self._taking_back = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await repeat("checking MCP sessions", self.check, every_s=self._policy.check_every_s)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one HTTP request."""
        conversation_id = id_in(scope)
        if conversation_id is None:
            await self._open(scope, receive, send)
            return
        credential = credential_of(scope)
        conversation = self._known.get(conversation_id) or await self._recreate(conversation_id, credential, scope)
        if conversation is None or conversation.credential != credential:
            await self._refuse(conversation_id, send)
            return
        await self._pass(conversation, scope, receive, send)
        if conversation.is_over and not conversation.has_ended:  # what it left running may end much later
            if self._openings is not None:
                self._openings.forget(conversation.id, conversation.session_id)  # who said goodbye is not taken back
            await self._end(conversation, "it sent DELETE", for_good=True)

    def conversation(self, conversation_id: str) -> HandshakeConversation | None:
        """The conversation of this id, while it lasts."""
        return self._known.get(conversation_id)

    def close_streams(self, credential: str | None = None) -> None:
        """Ends the streams that clients hold open, those of one credential or all. Calls continue."""
        for conversation in self._known.values():
            if credential in (None, conversation.credential):
                conversation.streams.close(STANDING)

    async def check(self) -> None:
        """Notices conversations whose client has disappeared, and drops those whose session is forgotten."""
        now = running_time()
        silent_after = self._sessions.policy.modern_disconnect_s
        for conversation in list(self._known.values()):
            quiet = now - conversation.quiet_since
            conversation.streams.log.expire()
            if conversation.requests:
                continue
            try:
                session = self._sessions.get(conversation.session_id)
            except SessionNotFound:
                await self._end(conversation, "its session expired")
                continue
            if session.holders:
                continue
            if conversation.had_stream and quiet >= self._policy.stream_grace_s:
                conversation.had_stream = False  # said once; a client that still calls is back by that
                self._disconnect(conversation, "its stream was closed")
            elif quiet >= silent_after and session.disconnected_at is None:
                self._disconnect(conversation, "it was idle for too long")

    async def _refuse(self, conversation_id: str, send: Send) -> None:
        """404 makes well-behaved clients initialize again by themselves: right after a restart or a disconnect, wrong
        after a kill."""
        try:
            self._sessions.check_alive(self._sessions.get(conversation_id))
        except SessionTerminated as error:
            await refuse(send, 403, str(error))
        except SessionNotFound as error:
            await refuse(send, 404, str(error))
        else:
            await refuse(send, 404, "This MCP session has ended. Send initialize to start a new one.")

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request without an id: `initialize` begins a conversation, the transport refuses all others."""
        try:
            self._sessions.check_room(credential_of(scope))
        except TooManySessions as error:
            # Not 503: the proxy takes that for a server that is away, and waits.
            await refuse(send, 429, str(error))
            return
        if len(self._known) >= self._sessions.policy.max_sessions:
            await self.check()  # those of sessions that were forgotten to make room
        if self._direct is not None and scope["method"] == "POST":
            body = await body_of(receive)
            if await self._open_directly(self._direct, scope, body, send):
                return
            receive = body.receive
        conversation = HandshakeConversation(self._sessions.new_id(), credential_of(scope))
        await self._connect(conversation, await self._sdk.loaded())
        opening = Opening(receive, send)
        established = False
        try:
            await self._pass(conversation, scope, opening.receive, opening.send)
            established = opening.status < 400
        finally:
            if not established:
                with anyio.CancelScope(shield=True):
                    await self._end(conversation, None)
        if established and self._openings is not None:
            self._openings.remember(conversation.id, conversation.session_id, opening.body)

    async def _open_directly(self, direct: DirectLane, scope: Scope, body: Body, send: Send) -> bool:
        """Begins a conversation that gets a transport when it needs one; False for an `initialize` that is not of the
        usual form, or is refused."""
        request = opening_in(body.content)
        if request is None:
            return False
        conversation = HandshakeConversation(self._sessions.new_id(), credential_of(scope))
        conversation.opening = body.content
        begin_exchange(scope, conversation)
        if not await direct.open(conversation, request, scope, send):
            return False
        self._known[conversation.id] = conversation
        if self._openings is not None:
            self._openings.remember(conversation.id, conversation.session_id, body.content)
        return True

    async def _connect(self, conversation: HandshakeConversation, adapter: "Adapter") -> "ResumableTransport":
        """Gives a conversation a transport."""
        assert self._tasks is not None, "serve() needs run()"
        transport = await self._tasks.start(self._drive, conversation, adapter)
        conversation.transport = transport
        self._known[conversation.id] = conversation
        return transport

    async def _drive(
        self,
        conversation: HandshakeConversation,
        adapter: "Adapter",
        *,
        task_status: "anyio.abc.TaskStatus[ResumableTransport]",
    ) -> None:
        try:
            await adapter.drive(conversation, task_status=task_status)
        except Exception:
            logger.exception("an MCP session failed", extra={"session": conversation.session_id})
        finally:
            self._known.pop(conversation.id, None)
            conversation.streams.close_all()  # nothing comes any more

    async def _transport(self, conversation: HandshakeConversation, sender: Sender) -> "ResumableTransport":
        """The transport of a conversation. One that the direct lane began gets it here, and the SDK reads how."""
        if conversation.transport is not None:
            return conversation.transport
        adapter = await self._sdk.loaded()
        async with conversation.connecting:
            if conversation.was_left:
                raise _WasLeft
            if conversation.transport is None:
                assert self._tasks is not None, "serve() needs run()"
                transport = await self._tasks.start(self._drive, conversation, adapter)
                messages = (conversation.opening or b"", _INITIALIZED)
                for message in messages if conversation.is_initialized else messages[:1]:
                    replay = Replay(conversation, message, sender)
                    begin_exchange(replay.scope, conversation)
                    await transport.handle_request(replay.scope, replay.receive, replay.send)
                conversation.transport = transport
                return transport
            return conversation.transport

    async def _pass(self, conversation: HandshakeConversation, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = begin_exchange(scope, conversation)
        receive = exchange.watch(receive)
        conversation.requests += 1
        try:
            if scope["method"] == "GET":
                with self._holding(conversation):
                    await self._get(conversation, scope, receive, send)
            elif scope["method"] == "POST":
                await self._post(conversation, exchange, scope, receive, send)
            elif (
                scope["method"] == "DELETE" and conversation.transport is None and not conversation.connecting.locked()
            ):
                conversation.was_left = True  # a client that ends does not wait for the SDK
                await accept(conversation, send, 200)
            else:
                await (await self._transport(conversation, scope[IN_SCOPE])).handle_request(scope, receive, send)
        except _WasLeft:
            await self._refuse(conversation.id, send)
        finally:
            conversation.requests -= 1
            conversation.quiet_since = running_time()
            rest.stir()  # a client may have gone

    async def _get(self, conversation: HandshakeConversation, scope: Scope, receive: Receive, send: Send) -> None:
        """The stream outside of calls; with `Last-Event-ID` that one again, or the stream of a call."""
        streams = conversation.streams
        asked = next((value.decode("latin-1") for name, value in scope["headers"] if name == _LAST_EVENT), "")
        last = streams.log.find(asked)
        if not accepts_stream(scope):
            await refuse(send, 406, "Not Acceptable: Client must accept text/event-stream")
            return
        if last is None and asked.startswith("r"):
            await refuse(send, 400, "What was sent after that event is not kept any more. Send the request again.")
            return
        # An event of the stream outside of calls, or nobody's: that stream starts over, also after a restart.
        # Who knows an event takes the place of a connection that nobody has noticed to be dead.
        stream = STANDING if last is None else last.stream
        if last is None and streams.stands:
            await refuse(send, 409, "Conflict: Only one SSE stream is allowed per session")
            return
        runs = last is not None and not streams.log.has_ended(stream, last.number)
        if runs and conversation.transport is not None and stream != STANDING:
            await conversation.transport.let_go(stream)
        call = conversation.exchanges.get(stream) if runs else None
        with call.resumed() if call else nullcontext():
            conversation.had_stream = True
            async with anyio.create_task_group() as tasks:
                if stream == STANDING:
                    tasks.start_soon(self._learn_folder, conversation)
                headers = [(ID_HEADER, conversation.id.encode("ascii"))]
                await streams.serve(stream, last and last.number, receive, send, headers)
                tasks.cancel_scope.cancel()

    async def _learn_folder(self, conversation: HandshakeConversation) -> None:
        """Asks a client for its roots, on its stream: once, until it says that they changed."""
        async with conversation.asking_roots:
            is_ready = conversation.is_initialized and conversation.streams.stands
            may_ask = is_ready and conversation.offered.get("roots") is not None
            while may_ask and not conversation.knows_roots:
                may_ask = await self._ask_for_roots(conversation)

    async def _ask_for_roots(self, conversation: HandshakeConversation) -> bool:
        """False if the client has not answered in time."""
        conversation.knows_roots = True
        with anyio.move_on_after(ASKING_S) as waiting:
            try:
                conversation.roots_folder = folder_in_answers({KEY: await conversation.streams.ask(METHOD)})
            except ClientCannotAnswer as error:
                logger.debug("the client did not report its roots: %s", error)
            except anyio.get_cancelled_exc_class():
                conversation.knows_roots = False  # its stream broke, or it does not answer: it is asked on the next
                raise
            except Exception:  # a task of all conversations
                logger.exception("the roots of a client could not be read", extra={"session": conversation.session_id})
        return not waiting.cancelled_caught

    async def _post(
        self, conversation: HandshakeConversation, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = await body_of(receive)
        parts = body.parts()
        if parts is None:
            await self._message(conversation, exchange, scope, body, send)
        elif conversation.version != _HAS_BATCHES:
            await refuse(send, 400, f"Only MCP {_HAS_BATCHES} has batches. Send one message in each request.")
        elif not 0 < len(parts) <= MOST_MESSAGES:
            await refuse(send, 400, f"A batch has 1 to {MOST_MESSAGES} messages.")
        else:
            await serve_batch(parts, scope, body.receive, send, partial(self._part, conversation))

    async def _part(
        self, conversation: HandshakeConversation, scope: Scope, part: bytes, receive: Receive, send: Send
    ) -> None:
        exchange = begin_exchange(scope, conversation)
        body = Body([{"type": "http.request", "body": part, "more_body": False}], exchange.watch(receive))
        await self._message(conversation, exchange, scope, body, send)

    async def _message(
        self, conversation: HandshakeConversation, exchange: Exchange, scope: Scope, body: Body, send: Send
    ) -> None:
        """A request that is sent again before it was answered waits until the transport is through with the first: one
        would take the other's answer away. What they ask for is done once; `tools/idempotency.py` knows that."""
        direct = self._direct
        if direct is not None and await direct.serve_handshake(conversation, exchange, scope, body, send):
            return
        head = Head(body.content)
        if head.problem is not None:
            await refuse(send, 400, head.problem)
            return
        if conversation.streams.take(head.answered, head.result, head.error):
            await accept(conversation, send)
            return
        cancelled = conversation.direct.get(head.cancelled or "")
        if cancelled is not None:
            cancelled.cancel()
        if head.method in (INITIALIZED, ROOTS_CHANGED):
            conversation.is_initialized |= head.method == INITIALIZED
            conversation.knows_roots &= head.method != ROOTS_CHANGED
            if not conversation.asking_roots.locked():  # who holds it goes on until it knows them
                assert self._tasks is not None, "serve() needs run()"
                self._tasks.start_soon(self._learn_folder, conversation)
        if head.is_notification and conversation.transport is None and not conversation.connecting.locked():
            await accept(conversation, send)  # of those that are left the SDK would know no more
            return
        async with conversation.turns.holding([] if head.request is None else [head.request]):
            await (await self._transport(conversation, scope[IN_SCOPE])).handle_request(scope, body.receive, send)

    def _holding(self, conversation: HandshakeConversation) -> AbstractContextManager[None]:
        """An open stream shows that its client lives; one of a killed or forgotten session shows nothing."""
        try:
            session = self._sessions.get(conversation.session_id)
            self._sessions.check_alive(session)
        except (SessionNotFound, SessionTerminated):
            return nullcontext()
        return self._sessions.held(session)

    async def _end(self, conversation: HandshakeConversation, reason: str | None, *, for_good: bool = False) -> None:
        conversation.has_ended = True
        self._known.pop(conversation.id, None)
        if reason is not None:
            self._disconnect(conversation, reason, for_good=for_good)
        for running in conversation.direct.values():
            running.cancel()
        conversation.streams.close_all()
        if conversation.transport is not None and not conversation.transport.is_terminated:
            await conversation.transport.terminate()

    def _disconnect(self, conversation: HandshakeConversation, reason: str, *, for_good: bool = False) -> None:
        """Its client has gone, and its session unless another client of the session is there: one that is being served,
        or was a moment ago."""
        session_id, since = conversation.session_id, running_time() - self._policy.stream_grace_s
        others = (one for one in self._known.values() if one is not conversation and one.session_id == session_id)
        if not any(other.requests or other.quiet_since > since for other in others):
            self._sessions.disconnect(session_id, reason, for_good=for_good)

    async def _recreate(self, conversation_id: str, credential: str, scope: Scope) -> HandshakeConversation | None:
        """Brings a conversation from before a restart back to life, by replaying how it began."""
        if self._openings is None:
            return None
        async with self._taking_back:
            if conversation_id in self._known:
                return self._known[conversation_id]
            body = await self._openings.recall(conversation_id, credential)
            if body is None:
                return None
            conversation = HandshakeConversation(conversation_id, credential)
            conversation.opening, conversation.is_initialized = body, True
            conversation.streams.miss()  # whatever has changed meanwhile
            request = opening_in(body)
            if request is not None and self._direct is not None:
                conversation.version, conversation.info = request.version, request.client
                conversation.offered = request.offered
            else:
                await self._transport(conversation, scope[IN_SCOPE])
            self._known[conversation_id] = conversation
            logger.info("resumed an MCP session", extra={"session": conversation_id})
            return conversation
