"""Resources and prompts of upstreams, for those sessions that may use them: listed from the kept lists, read and made
by their servers.

URIs stay as the servers wrote them, since their answers link to them; of two servers with one URI the first by name is
asked. Prompts are called `<server>__<prompt>`, as tools are.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio

from serena_central.core.errors import DeadlineExceeded
from serena_central.projects.root_settings import ClaudeSettings
from serena_central.sessions.session import Session
from serena_central.tools.offer import UpstreamOffer

if TYPE_CHECKING:
    from serena_central.hub.catalogs import Catalog
    from serena_central.hub.connection import Connection
    from serena_central.hub.hub import Hub
    from serena_central.hub.specs import UpstreamSpec

Result = TypeVar("Result")


class _Source(NamedTuple):
    spec: "UpstreamSpec"
    catalog: "Catalog"


class UpstreamContents:
    """Belongs to the event loop's thread."""

    def __init__(self, offer: UpstreamOffer, claude: ClaudeSettings) -> None:
        self._offer = offer
        self._claude = claude

    def are_configured(self, session: Session) -> bool:
        """Whether there are upstreams for a session."""
        return self._offer.are_configured(session)

    async def resources(self, session: Session) -> list[dict[str, Any]]:
        """MCP's Resource, each."""
        return [one for source in await self._sources(session) for one in source.catalog.resources]

    async def templates(self, session: Session) -> list[dict[str, Any]]:
        """MCP's ResourceTemplate, each."""
        return [one for source in await self._sources(session) for one in source.catalog.templates]

    async def read(self, session: Session, uri: str) -> dict[str, Any] | None:
        """MCP's ReadResourceResult; None if no upstream of the session has such a resource.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed, DeadlineExceeded
        """
        found = _holder(await self._sources(session), uri)
        if found is None:
            return None
        return await self._ask(session, found.spec, lambda one, caller: one.read_resource(uri, caller))

    async def subscribe(self, session: Session, uri: str, stream: str = "") -> bool:
        """Has updates of a resource published for the session, for one `stream` of it in the modern era; False if no
        upstream of it has the resource, or says when it changes.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        found = _holder(await self._sources(session), uri)
        offered: Mapping[str, Any] = found.catalog.capabilities.get("resources") or {} if found is not None else {}
        if found is None or not offered.get("subscribe"):
            return False
        await (await self._offer.hub()).subscribe(found.spec, uri, self._offer.caller(session), stream)
        return True

    async def unsubscribe(self, session: Session, uri: str, stream: str = "") -> None:
        """Raises as `subscribe` does."""
        found = _holder(await self._sources(session), uri)
        if found is not None:
            await (await self._offer.hub()).unsubscribe(found.spec, uri, self._offer.caller(session), stream)

    async def want_logs(self, session: Session, level: str) -> None:
        """The session's client wants log messages of this level."""
        await self._offer.want_logs(session, level)

    async def prompts(self, session: Session) -> list[dict[str, Any]]:
        """MCP's Prompt, each, under the name that sessions call it by."""
        return [{**one, "name": name} for name, (_, one) in (await self._prompts(session)).items()]

    async def prompt(self, session: Session, name: str, arguments: Mapping[str, str]) -> dict[str, Any] | None:
        """MCP's GetPromptResult; None if no upstream of the session has this prompt.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed, DeadlineExceeded
        """
        found = (await self._prompts(session)).get(name)
        if found is None:
            return None
        source, own = found
        given = dict(arguments)
        return await self._ask(session, source.spec, lambda one, caller: one.get_prompt(own["name"], given, caller))

    async def complete(self, session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """MCP's CompleteResult for one of their prompts or templates; None if it is none of theirs. `params` as in the
        request.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed, DeadlineExceeded
        """
        ref: Mapping[str, Any] = params.get("ref") or {}
        sources = await self._sources(session)
        if ref.get("type") == "ref/prompt":
            found = (await self._prompts(session)).get(str(ref.get("name")))
            if found is None:
                return None
            source, ref = found[0], {**ref, "name": found[1]["name"]}
        else:
            uri = str(ref.get("uri"))
            named = [one for one in sources if any(uri == each.get("uriTemplate") for each in one.catalog.templates)]
            if not named:
                return None
            source = named[0]
        sent = {**params, "ref": dict(ref)}
        return await self._ask(session, source.spec, lambda one, caller: one.complete(sent, caller))

    async def _prompts(self, session: Session) -> dict[str, tuple[_Source, dict[str, Any]]]:
        sources = await self._sources(session)
        if not sources:
            return {}
        from serena_central.hub.names import upstream_names

        known = {(one.spec.name, str(each["name"])): (one, each) for one in sources for each in one.catalog.prompts}
        return {name: known[pair] for name, pair in upstream_names(known).items()}

    async def _sources(self, session: Session) -> list[_Source]:
        """The session's upstreams that no rule closes as a whole, by name."""
        if not self.are_configured(session):
            return []
        hub = await self._offer.hub()
        rules = self._claude.of(session.rules_root)
        specs = [
            spec
            for spec in self._offer.specs(hub, session)
            if rules is None or rules.permissions.upstream(spec.name, "") is None
        ]
        known = await hub.known(specs, self._offer.caller(session), hub.policy.learn_wait_s)
        return [_Source(spec, known[spec.name]) for spec in sorted(specs, key=_name) if spec.name in known]

    async def _ask(
        self, session: Session, spec: "UpstreamSpec", request: "Callable[[Connection, Any], Awaitable[Result]]"
    ) -> Result:
        hub: Hub = await self._offer.hub()
        caller = self._offer.caller(session)
        with anyio.move_on_after(spec.call_timeout_s):
            return await hub.ask(spec, lambda connection: request(connection, caller), caller)
        raise DeadlineExceeded(spec.name, spec.call_timeout_s)


def _name(spec: "UpstreamSpec") -> str:
    return spec.name


def _holder(sources: list[_Source], uri: str) -> _Source | None:
    """Who has a resource: who lists it, else whose template begins like it."""
    for source in sources:
        if any(one.get("uri") == uri for one in source.catalog.resources):
            return source
    for source in sources:
        for one in source.catalog.templates:
            literal = str(one.get("uriTemplate", "")).partition("{")[0]
            if literal and uri.startswith(literal):
                return source
    scheme = uri.partition(":")[0]
    for source in sources:
        if any(str(one.get("uri", "")).partition(":")[0] == scheme for one in source.catalog.resources):
            return source
    return None
