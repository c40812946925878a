"""Hands requests for MCP straight to their endpoint: Starlette's routing would be a twentieth of what a call costs."""

from starlette.types import ASGIApp, Receive, Scope, Send

MCP_PATH = "/mcp"

_MCP_PATHS = frozenset((MCP_PATH, f"{MCP_PATH}/"))


class Dispatch:
    """ASGI middleware, to stand behind the access check."""

    def __init__(self, app: ASGIApp, *, mcp: ASGIApp) -> None:
        """`app` gets all other requests."""
        self._app = app
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_mcp = scope["type"] == "http" and scope["path"] in _MCP_PATHS
        await (self._mcp if is_mcp else self._app)(scope, receive, send)
