"""The lists of resources, their templates and prompts, as both lanes serve them: our own, and those of upstreams.

Results are in wire form. What is read or run of them goes through the SDK (`adapter.py`).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from serena_central.mcp_server.offered import Prompts, Resources
from serena_central.mcp_server.prompts import WorkflowPrompts
from serena_central.mcp_server.resource_news import ResourceNews
from serena_central.mcp_server.resources import ProjectResources
from serena_central.mcp_server.sender import ClientConnection
from serena_central.mcp_server.tool_methods import wire
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller

Listing = Callable[[Session, ClientConnection | None], Awaitable[dict[str, Any]]]
"""Makes the result for a session, asked over a connection (None in the modern era)."""


class Listings:
    """Belongs to the event loop's thread."""

    def __init__(
        self, caller: ToolCaller, news: ResourceNews, resources: Resources | None, prompts: Prompts | None
    ) -> None:
        self._caller = caller
        self._news = news
        self.own_resources = resources or ProjectResources()
        self.own_prompts = prompts or WorkflowPrompts()
        self.of: Mapping[str, Listing] = {
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "prompts/list": self._prompts,
        }
        """By method."""

    async def _resources(self, session: Session, connection: ClientConnection | None) -> dict[str, Any]:
        if connection is not None:
            self._news.met(session, connection)
        theirs = self._caller.upstream_contents
        others = await theirs.resources(session) if theirs is not None else []
        return wire({"resources": [*await self.own_resources.listed(self._caller, session), *others]})

    async def _templates(self, session: Session, _connection: ClientConnection | None) -> dict[str, Any]:
        theirs = self._caller.upstream_contents
        others = await theirs.templates(session) if theirs is not None else []
        return wire({"resourceTemplates": [*self.own_resources.templates, *others]})

    async def _prompts(self, session: Session, _connection: ClientConnection | None) -> dict[str, Any]:
        theirs = self._caller.upstream_contents
        others = await theirs.prompts(session) if theirs is not None else []
        return wire({"prompts": [*self.own_prompts.listed(), *others]})
