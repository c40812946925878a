"""A server that is built but not yet running."""

from dataclasses import dataclass

import anyio
from starlette.applications import Starlette

from serena_central.access.connections import Connections
from serena_central.access.token import Token
from serena_central.core.collector import Collector
from serena_central.core.descriptors import Descriptors
from serena_central.mcp_server.endpoint import McpEndpoint
from serena_central.web.pages.dashboard import Dashboard
from serena_central.web.presence import Presence
from serena_central.web.web_services import WebServices

CALLS_END_S = 3.0
"""Grace period of running calls at shutdown; afterwards they are answered with an error."""


@dataclass(frozen=True, kw_only=True)
class Application(WebServices):
    """`app` is what a web server serves; its lifespan runs everything."""

    token: Token
    endpoint: McpEndpoint
    presence: Presence
    dashboard: Dashboard
    connections: Connections
    descriptors: Descriptors
    collector: Collector
    failures: list[BaseException]
    """Why the lifespan ended by itself; empty if it did not."""
    app: Starlette

    async def let_go(self) -> None:
        """Ends what keeps connections open: streams at once, running calls after a grace period, each with an
        answer."""
        self.endpoint.close_streams()
        self.presence.close()
        self.tasks.closing.set()
        self.dashboard.live.close()
        await anyio.sleep(CALLS_END_S)
        for session in self.sessions.sessions():
            for call in list(session.running.values()):
                call.cancel("The server is stopping. Call again when it is back.")
