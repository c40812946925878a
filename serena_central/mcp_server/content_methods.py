"""Resources, prompts and completions as both lanes serve them: our own, and those of upstreams. In wire form.

A request may ask its client something on its way, by the channel that its lane has installed.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from serena_central.mcp_server.completions import completed
from serena_central.mcp_server.offered import Prompts, Resources
from serena_central.mcp_server.prompts import WorkflowPrompts
from serena_central.mcp_server.protocol import wire
from serena_central.mcp_server.resource_news import ResourceNews
from serena_central.mcp_server.resources import OWN_SCHEME, ProjectResources
from serena_central.mcp_server.sender import ClientConnection
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller

UPSTREAM_SEPARATOR = "__"
"""In names of their prompts."""

Method = Callable[[Session, ClientConnection | None, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Makes the result for a session, asked over a connection (None in the modern era) with parameters that the lane has
checked.

Raises:
    SerenaCentralError, ClientInputRequired
"""


class ContentMethods:
    """Belongs to the event loop's thread."""

    def __init__(
        self, caller: ToolCaller, news: ResourceNews, resources: Resources | None, prompts: Prompts | None
    ) -> None:
        self._caller = caller
        self._news = news
        self._own_resources = resources or ProjectResources()
        self._own_prompts = prompts or WorkflowPrompts()
        self.of: Mapping[str, Method] = {
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
        }
        """By method."""

    def pass_on(self, session: Session) -> bool:
        """Whether results for a session may be those of upstreams."""
        theirs = self._caller.upstream_contents
        return theirs is not None and theirs.are_configured(session)

    async def _resources(
        self, session: Session, connection: ClientConnection | None, _params: Mapping[str, Any]
    ) -> dict[str, Any]:
        if connection is not None:
            self._news.met(session, connection)
        theirs = self._caller.upstream_contents
        others = await theirs.resources(session) if theirs is not None else []
        return wire({"resources": [*await self._own_resources.listed(self._caller, session), *others]})

    async def _templates(
        self, session: Session, _connection: ClientConnection | None, _params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs = self._caller.upstream_contents
        others = await theirs.templates(session) if theirs is not None else []
        return wire({"resourceTemplates": [*self._own_resources.templates, *others]})

    async def _read(
        self, session: Session, _connection: ClientConnection | None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs, uri = self._caller.upstream_contents, params["uri"]
        if theirs is not None and not uri.startswith(OWN_SCHEME):
            found = await theirs.read(session, uri)
            if found is not None:
                return wire(found)
        return wire(await self._own_resources.read(self._caller, session, uri))

    async def _subscribe(
        self, session: Session, connection: ClientConnection | None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        if connection is not None:
            self._news.met(session, connection)
        theirs, uri = self._caller.upstream_contents, params["uri"]
        if theirs is None or uri.startswith(OWN_SCHEME) or not await theirs.subscribe(session, uri):
            self._news.subscribe(session, uri)
        if connection is not None:
            connection.subscribed.add(uri)
        return {}

    async def _unsubscribe(
        self, session: Session, connection: ClientConnection | None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs, uri = self._caller.upstream_contents, params["uri"]
        if connection is not None:
            connection.subscribed.discard(uri)
        self._news.unsubscribe(session, uri)
        if theirs is not None and not uri.startswith(OWN_SCHEME):
            await theirs.unsubscribe(session, uri)
        return {}

    async def _prompts(
        self, session: Session, _connection: ClientConnection | None, _params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs = self._caller.upstream_contents
        others = await theirs.prompts(session) if theirs is not None else []
        return wire({"prompts": [*self._own_prompts.listed(), *others]})

    async def _prompt(
        self, session: Session, _connection: ClientConnection | None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs, name = self._caller.upstream_contents, params["name"]
        arguments: Mapping[str, str] = params.get("arguments") or {}
        if theirs is not None and UPSTREAM_SEPARATOR in name:
            found = await theirs.prompt(session, name, arguments)
            if found is not None:
                return wire(found)
        return wire(await self._own_prompts.get(name, arguments))

    async def _complete(
        self, session: Session, _connection: ClientConnection | None, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        theirs, argument = self._caller.upstream_contents, params["argument"]
        if theirs is not None:
            found = await theirs.complete(session, params)
            if found is not None:
                return wire(found)
        context: Mapping[str, Any] = params.get("context") or {}
        known: Mapping[str, str] = context.get("arguments") or {}
        return wire(await completed(self._caller, session, argument["name"], argument["value"], known))
