"""The stream by which a proxy shows that it is alive: it carries one event and ends with the proxy.

The kernel closes a dead process's connections, whatever killed it and on whatever machine it ran; so the server sees
the end of every proxy, in both eras, without asking for processes by ids that may have been given away again.
"""

from collections.abc import Awaitable, Callable, Iterable

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import credential_of
from serena_central.core.disconnects import on_disconnect
from serena_central.core.errors import SessionNotFound
from serena_central.core.running_time import running_time
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity, Session

GRACE_S = 4.0
"""A proxy that only lost its connection is back at once."""


class Presence:
    """Serves GET /api/v1/sessions/{session}/presence."""

    def __init__(self, sessions: SessionManager, version: str, *, calls_once: Iterable[str]) -> None:
        """`calls_once` are the tools that change something and may still be called again under the same call id."""
        self._sessions = sessions
        self._stopping = anyio.Event()
        self._greeting = msgspec.json.encode({"version": version, "calls_once": list(calls_once)})

    def close(self) -> None:
        """Ends all streams, so that they don't hold up the server's stop."""
        self._stopping.set()

    async def hold(self, request: Request) -> Response:
        """The session counts as there while the answer lasts; one that the server has forgotten starts over."""
        session = self._session(request.path_params["session"], credential_of(request.scope))
        return _Stream(lambda receive, send: self._hold(session, receive, send))

    def _session(self, session_id: str, credential: str) -> Session:
        try:
            session = self._sessions.get(session_id)
        except SessionNotFound:
            return self._sessions.identify(ClientIdentity(credential=credential, explicit_id=session_id))
        if session.credential != credential:
            raise SessionNotFound(session_id)
        self._sessions.check_alive(session)
        return session

    async def _hold(self, session: Session, receive: Receive, send: Send) -> None:
        with self._sessions.held(session):
            await send({"type": "http.response.body", "body": b"data: " + self._greeting + b"\n\n", "more_body": True})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(on_disconnect, receive, tasks.cancel_scope.cancel)
                await self._stopping.wait()
                tasks.cancel_scope.cancel()
        if self._stopping.is_set():
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._see_whether_it_returns(session)

    async def _see_whether_it_returns(self, session: Session) -> None:
        calls = session.calls
        while True:
            with running_time.move_on_after(GRACE_S):
                await self._stopping.wait()
            if self._stopping.is_set() or session.holders or session.calls != calls:
                return
            if not session.running:
                self._sessions.disconnect(session.id, "its proxy disconnected")
                return


class _Stream(Response):
    """An event stream that is written by a function."""

    media_type = "text/event-stream"

    def __init__(self, write: Callable[[Receive, Send], Awaitable[None]]) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await self._write(receive, send)
