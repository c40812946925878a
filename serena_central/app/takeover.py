"""Fetches sessions that come from another server with the same database, before their request is answered.

It stands behind the access check, and only where the database is shared: a single server knows its sessions.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from serena_central.sessions.record import SessionRecorder

_HEADERS = (b"x-serena-session", b"mcp-session-id")
_PATH = "/api/v1/sessions/"

MOST_CHARS = 128
"""Of a session's id."""


class TakeOver:
    """ASGI middleware. Whose a session is, is checked by whoever answers."""

    def __init__(self, app: ASGIApp, *, recorder: SessionRecorder) -> None:
        self._app = app
        self._recorder = recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for session_id in named_sessions(scope):
                await self._recorder.take_over(session_id)
        await self._app(scope, receive, send)


def named_sessions(scope: Scope) -> set[str]:
    """The ids of sessions in headers and path."""
    found = {value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
    if scope["path"].startswith(_PATH):
        found.add(scope["path"].removeprefix(_PATH).partition("/")[0])
    return {one for one in found if one and len(one) <= MOST_CHARS}
