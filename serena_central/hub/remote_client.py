"""The HTTP client of one connection to a remote upstream. Whatever becomes of a request fails the message that it
carries, and nothing else.

The MCP SDK's transports end the connection of all sessions when one request fails or its answer is cut off, send
nothing more until a notification has been accepted, read an answer however long it is, and hand it to whoever waits for
the id that stands in it.
"""

from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import anyio
import httpx2
import msgspec
from anyio.abc import TaskGroup
from mcp.client.auth import OAuthFlowError
from mcp.shared._httpx_utils import stream_within_origin
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import JSONRPCError, JSONRPCResponse

from serena_central.core.decoding import from_json
from serena_central.hub.bodies import BodyTooLong, bound, kind_of
from serena_central.hub.callers import ONGOING
from serena_central.hub.wire_log import WireLog
from serena_central.hub.wire_messages import (
    MOST_PARTS,
    NO_PROTOCOL,
    TOO_MANY_PARTS,
    UNREACHABLE,
    Parts,
    failure,
    has_too_many_parts,
    message_of,
)
from serena_central.standalone.backoff import Backoff

CONNECT_S = 30.0
"""To connect, to send a request and to get a connection. How long an answer may take is the call's bound."""

QUIET_S = 86_400.0
"""A stream may say nothing for as long: notifications come on it, and health checks find out whether it still works."""

CONNECTIONS = httpx2.Limits(max_connections=2000, max_keepalive_connections=20)
"""Each call that is not answered yet takes one: calls of all sessions must fit in, not wait for each other."""

LISTEN_S, LISTEN_CAP_S = 1.0, 60.0
"""The first and the longest pause before a server is listened to again."""

DELIVERY_S = 30.0
"""For a server to accept a notification, or an answer of ours."""

DELIVERIES, MOST_DELIVERIES = 10, 1000
"""Of these at the same time, and of those that wait for it; what a server asks beyond that has no answer."""

SESSION_HEADER = "mcp-session-id"

FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, OAuthFlowError, OSError)
"""What a request may end with."""

UNAUTHORIZED, BAD_REQUEST, NOT_FOUND = 401, 400, 404

NOT_NOW = (408, 429)
"""Statuses of a client's errors that pass, as those of a server's do."""

_DELIVERED = "serena_central.delivered"
"""Marks requests (httpx2's `extensions`) that are sent as they are."""


class _Named(msgspec.Struct):
    requestId: int | str | None = None  # noqa: N815 (MCP's name)


class Head(msgspec.Struct):
    """What says which message a request carries."""

    method: str = ""
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def cancelled(self) -> int | str | None:
        """The request that it cancels."""
        return from_json(self.params, _Named).requestId if self.method == "notifications/cancelled" else None


class _Open:
    """A request that is not answered yet."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Around the wait for a response, and for an answer that is no stream."""
        self.stream: _Stream | None = None

    async def close(self) -> None:
        """Ends the wait for whatever comes next."""
        self.scope.cancel()
        if self.stream is not None:
            await self.stream.cut()


async def _bounded(events: Any) -> AsyncIterator[bytes]:
    """Parts of an event stream that the SDK reads.

    Raises:
        httpx2.SSEError: an event has too many objects and lists.
    """
    parts = Parts()
    async for part in events:
        if parts.add_events(part) > MOST_PARTS:
            raise httpx2.SSEError(TOO_MANY_PARTS)
        yield part


class _Stream(httpx2.AsyncByteStream):
    """An event stream that ends when its request was cancelled: the server has been told so, and many send nothing
    more."""

    def __init__(self, inner: Any, closed: Callable[[], None]) -> None:
        self._inner = inner
        self._closed = closed
        self._is_cut = False

    async def cut(self) -> None:
        """Fails whoever reads."""
        self._is_cut = True
        await self._inner.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in _bounded(self._inner):
                yield part
        except httpx2.HTTPError as error:
            if self._is_cut:  # the SDK would go on with another request
                raise httpx2.SSEError("the request was cancelled") from error
            raise

    async def aclose(self) -> None:
        self._closed()
        await self._inner.aclose()


class _Listened(httpx2.AsyncByteStream):
    """A stream that is opened again however it ended: a break is no other end to the SDK."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(httpx2.TransportError):
            async for part in _bounded(self._inner):
                yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class RemoteClient(httpx2.AsyncClient):
    """Sends a message for its connection; `login_advice` says what to do where a server wants a login."""

    def __init__(self, tasks: TaskGroup, log: WireLog, login_advice: str, **options: Any) -> None:
        super().__init__(
            timeout=httpx2.Timeout(CONNECT_S, read=QUIET_S),
            limits=CONNECTIONS,
            event_hooks={"response": [bound]},
            **options,
        )
        self._tasks = tasks
        self._log = log
        self._login_advice = login_advice
        self._requests: dict[int | str, _Open] = {}
        self._delivering = anyio.CapacityLimiter(DELIVERIES)
        self._listen_at = 0.0
        """When its messages may be listened to again."""
        self.unauthorized = False
        """The server has answered its newest request with 401: it wants a login."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # type: ignore[override]
        """As httpx2's. A message over streamable HTTP is answered in any case: a request by a failure, if by nothing
        else; all others at once."""
        if request.method == "GET" and SESSION_HEADER in request.headers and ONGOING.get() is None:
            return await self._listening(request, options)
        head = _head_of(request)
        if head is None or _DELIVERED in request.extensions:
            return self._seen(await super().send(request, **options))
        if head.method and head.id is not None:
            return await self._answered(request, head, super().send(request, **options))
        if head.method == "notifications/initialized":
            await self._noted(request, head)  # before all that follows
        elif self._delivering.statistics().tasks_waiting < MOST_DELIVERIES:
            self._tasks.start_soon(self._noted, request, head)
        else:
            self._log.note("the server does not accept messages as fast as it asks for them: one was dropped")
        return httpx2.Response(202, request=request)

    async def _listening(self, request: httpx2.Request, options: Mapping[str, Any]) -> httpx2.Response:
        """The stream of what a server says by itself. The SDK gives it up for good when it has broken twice."""
        pauses = Backoff(LISTEN_S, LISTEN_CAP_S)
        await anyio.sleep(max(self._listen_at - anyio.current_time(), 0))  # whatever pause the server asks for
        self._listen_at = anyio.current_time() + LISTEN_S
        while True:
            try:
                response = await super().send(request, **options)
                if not response.is_server_error and response.status_code not in NOT_NOW:
                    break
                await response.aclose()
            except httpx2.TransportError as error:
                self._log.note(f"its messages can't be listened to: {error or type(error).__name__}")
            await anyio.sleep(pauses.next_s())
        if response.is_success:
            response.stream = _Listened(response.stream)
        else:
            self._log.note(f"its messages can't be listened to: {self._refusal(response)}")
        return response

    async def delivered(self, request: httpx2.Request) -> str:
        """Sends a message to a server that answers elsewhere. Returns why it did not arrive, else "". Whoever cancels
        the request that it carries ends this, too."""
        head, why = _head_of(request) or Head(), "it was cancelled"
        with self._opened(head.id if head.method else None) as opened, opened.scope:
            try:
                async with stream_within_origin(
                    self,
                    "POST",
                    request.url,
                    content=request.content,
                    headers=request.headers,
                    extensions={_DELIVERED: True},
                ) as response:
                    why = "" if response.is_success else self._refusal(response)
            except FAILURES as error:
                why = _unanswered(error)
        return why

    def _forget(self, request_id: int | str, request: _Open) -> None:
        if self._requests.get(request_id) is request:
            del self._requests[request_id]

    async def _noted(self, request: httpx2.Request, head: Head) -> None:
        """Delivers a message that nobody waits for. Never raises."""
        why = f"not within {DELIVERY_S:.0f} s"
        async with self._delivering:
            with anyio.move_on_after(DELIVERY_S):
                why = await self.delivered(request)
        if why:
            self._log.note(f"a message was not accepted ({head.method or 'an answer'}): {why}")
        if (cancelled := head.cancelled) is not None and (found := self._requests.get(cancelled)) is not None:
            await found.close()

    @contextmanager
    def _opened(self, request_id: int | str | None) -> Generator[_Open]:
        opened = _Open()
        if request_id is None:
            yield opened
            return
        self._requests[request_id] = opened
        try:
            yield opened
        finally:
            self._forget(request_id, opened)

    async def _answered(self, request: httpx2.Request, head: Head, sending: Any) -> httpx2.Response:
        """The response to a request: an event stream, a redirect, or its answer in JSON."""
        assert head.id is not None
        why: bytes | str = "it was cancelled"
        data: object = None
        headers = {"content-type": "application/json"}
        opened = self._requests[head.id] = _Open()
        try:
            with opened.scope:
                response = self._seen(await sending)
                if response.has_redirect_location:
                    return response
                if response.is_success and kind_of(response) == "text/event-stream":
                    opened.stream = _Stream(response.stream, partial(self._forget, head.id, opened))
                    response.stream = opened.stream
                    return response
                if session := response.headers.get(SESSION_HEADER):
                    headers[SESSION_HEADER] = session
                try:
                    why = await self._json(response, head.id)
                finally:
                    await response.aclose()
        except FAILURES as error:
            if head.method == "initialize":
                raise  # there is no connection yet, and why is worth knowing
            why, data = _unanswered(error), UNREACHABLE
        finally:
            if opened.stream is None:
                self._forget(head.id, opened)
        content = why if isinstance(why, bytes) else failure(head.id, why, data).model_dump_json(by_alias=True).encode()
        return httpx2.Response(200, headers=headers, content=content, request=request)

    async def _json(self, response: httpx2.Response, request_id: int | str) -> bytes | str:
        """The answer that a response holds, or why it has none."""
        if kind_of(response) != "application/json":
            return self._refusal(response)
        try:
            content = await response.aread()
        except BodyTooLong as error:
            return str(error)
        if has_too_many_parts(content):
            return TOO_MANY_PARTS
        message = message_of(content)
        if isinstance(message, JSONRPCError):
            # A response can only be about its own request, and servers that could not read that name none.
            is_own = message.id is not None and coerce_request_id(message.id) == request_id
            if not is_own:
                self._refusal(response)
            return message.model_copy(update={"id": request_id}).model_dump_json(by_alias=True).encode()
        if not response.is_success:
            return self._refusal(response)
        if not isinstance(message, JSONRPCResponse):
            return NO_PROTOCOL
        if coerce_request_id(message.id) != request_id:
            return f"{NO_PROTOCOL}: it is one to another request"
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    def _seen(self, response: httpx2.Response) -> httpx2.Response:
        self.unauthorized = response.status_code == UNAUTHORIZED
        return response

    def _refusal(self, response: httpx2.Response) -> str:
        """What a response says that is no answer. What it means for the session is noted at the call."""
        status = response.status_code
        said = f"HTTP status {status} {response.reason_phrase}".strip()
        ongoing = ONGOING.get()
        if ongoing is not None and SESSION_HEADER in response.request.headers:
            ongoing.forgotten = status == NOT_FOUND
            ongoing.refused = status == BAD_REQUEST
        if status == UNAUTHORIZED:
            return f"it wants a login ({said}): {self._login_advice}"
        if wait := response.headers.get("retry-after"):
            return f"{said}; it wants to be called again in {wait[:40]}{' s' if wait.isdigit() else ''}"
        if response.is_success:
            kind = kind_of(response)
            return f"{said} with {f'content of the type {kind[:80]}' if kind else 'no content'} instead of an answer"
        return said


def _head_of(request: httpx2.Request) -> Head | None:
    """The head of the message that a request carries; None if it carries none."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        return from_json(request.content, Head)
    except (msgspec.MsgspecError, httpx2.RequestNotRead):
        return None


def _unanswered(error: BaseException) -> str:
    """Why a request has no answer."""
    said = str(error) or type(error).__name__
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return f"it could not be reached: {said}. Nothing was sent to it"
    if isinstance(error, httpx2.DecodingError):
        return f"its answer can't be decompressed: {said}"
    return f"its answer did not arrive: {said}. The call may have been carried out"
