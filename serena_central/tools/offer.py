"""Decides which tools a session may call and which of them are listed, by settings, context and modes.

Settings and modes forbid tools; a context only shortens its client's list. An optional tool that only reads can be
called without being listed, because old prompts know it; one that changes something has to be included first.

Tools of upstreams are offered from a project's configuration, by way of the hub. The hub and all that it needs are
imported when a file of the configuration has an MCP server, and not before.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, get_args

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from serena_central.config.profiles import Context, Mode, Profiles
from serena_central.config.settings import ServerSettings, SharedSettings
from serena_central.core.client_channel import ClientChannel, ClientRequest, Method, client_channel
from serena_central.core.errors import ClientCannotAnswer, HubUnavailable, UpstreamQuestionRefused, restart_command
from serena_central.core.event_kinds import SessionDisconnected, SessionForgotten, SessionKilled
from serena_central.core.events import Event, EventBus
from serena_central.core.late_imports import import_patiently
from serena_central.core.lru import Lru
from serena_central.core.periodic import follow
from serena_central.core.progress import listener, waiting_for
from serena_central.core.quoting import escaped, quoted
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import ClaudeSettings, SuperRepos
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.trust.trust_decisions import Trust
from serena_central.sessions.session import Session
from serena_central.sessions.users import Users
from serena_central.tools.answer import PassedOn
from serena_central.tools.catalogue import Catalogue, Tool
from serena_central.tools.suspended_calls import SuspendedCalls
from serena_central.tools.tool_effects import decision_on, switched_off
from serena_central.tools.unknown_names import UnknownNames
from serena_central.tools.upstream_tool import UpstreamTool, upstream_tool

if TYPE_CHECKING:
    from serena_central.hub.callers import Caller, Log
    from serena_central.hub.hub import Hub
    from serena_central.hub.search import ToolSearch
    from serena_central.hub.snapshots import UpstreamSnapshot
    from serena_central.hub.specs import UpstreamSpec
    from serena_central.tools.task_grants import TaskGrants


LISTED_BYTES = 20_000
"""Schemas of upstreams' tools beyond which a session is shown how to search for them instead."""

MOST_SETS = 256
"""Of upstreams whose tools are kept ready: projects with the same ones share theirs."""


AnyTool = TypeVar("AnyTool", bound=Tool)

MOST_KEPT = 1000
"""Roots."""

MOST_LISTINGS = 200
"""Of sessions with the same settings, context and modes."""


class Offer:
    """Belongs to the event loop's thread; nothing in it waits."""

    def __init__(
        self,
        settings: ServerSettings,
        catalogue: Catalogue,
        profiles: Profiles,
        projects: ProjectRegistry,
        repos: SuperRepos,
        claude: ClaudeSettings,
        users: Users,
    ) -> None:
        self.users = users
        self._claude = claude
        self._known_off: Lru[Path, tuple[object, frozenset[str]]] = Lru(MOST_KEPT)
        """Root → the settings as they were read, and what they switch off."""
        self._catalogue = catalogue
        self.settings = settings
        self._projects = projects
        self._repos = repos
        self.profiles = profiles
        self.task_grants: TaskGrants | None = None
        """What sessions of tasks may call; None while there are no tasks."""

        self._listings: Lru[Hashable, _Listing] = Lru(MOST_LISTINGS)
        self._unknown_names = UnknownNames(settings, catalogue, profiles)

    def context(self, session: Session) -> Context:
        return self.profiles.context_for(session.context, session.client_name, self.settings.default_context)

    def modes(self, session: Session) -> list[Mode]:
        """The session's own modes, else the default ones; names that nobody defined are left out."""
        return self._modes(session, self._project_settings(session))

    def _modes(self, session: Session, project: SharedSettings) -> list[Mode]:
        names = session.modes or project.default_modes
        return [mode for name in names if (mode := self.profiles.modes.get(name))]

    def unknown_names(self, session: Session) -> list[str]:
        """A sentence for each mode, context and tool that a session or its settings name, and that is not there."""
        return self._unknown_names.of(session, self._project_settings(session), self.context(session))

    def super_repo(self, session: Session) -> SuperRepo | None:
        """The super-repo that a session works in."""
        active = session.active_project
        repo = self._repos.worked_in(active.root if active else None, session.working_folder)
        user = self.users.restricted(session.credential) if repo is not None and self.users.present else None
        return repo.seen_by(user.may_open) if repo is not None and user is not None else repo

    def listed(self, session: Session) -> list[Tool]:
        """The tools that a session is shown, in the catalogue's order."""
        tools, switched_off = self._profile_listing(session), self.switched_off(session)
        if switched_off:
            tools = [tool for tool in tools if tool.name not in switched_off]
        return self._open_to_caller(tools, session)

    def unlisted(self, session: Session) -> list[tuple[Tool, str]]:
        """The other tools, in the catalogue's order: why this session may not call each; "" if it may, by its name."""
        listed = {tool.name for tool in self.listed(session)}
        return [(tool, self.refusal(tool, session) or "") for tool in self._catalogue if tool.name not in listed]

    def _profile_listing(self, session: Session) -> list[Tool]:
        """Those that settings, context and modes show, whoever calls: made once for all sessions that have the same."""
        project = self._project_settings(session)
        profile = self.settings, project, self.context(session), *self._modes(session, project)
        in_super_repo = self.super_repo(session) is not None
        # What is listed holds the parts of its profile, so that no other objects can have these ids meanwhile.
        key = (session.shared, in_super_repo, *map(id, profile))
        kept = self._listings.get(key)
        if kept is None:
            included = self._included(session)
            kinds = ("always", "super-repo") if in_super_repo else ("always",)
            chosen = [tool for tool in self._catalogue if tool.shown in kinds or tool.name in included]
            kept = self._listings[key] = _Listing(profile, self._shown_by_profile(session, chosen))
        return kept.tools

    def allowed(self, session: Session, tools: Iterable[AnyTool]) -> list[AnyTool]:
        """Those of some tools that a session is shown and may call; for those of upstreams, and what belongs to
        them."""
        found = self._claude.of(session.rules_root)
        shown = self._shown(session, tools)
        return [tool for tool in shown if found is None or decision_on(found, tool) is None]

    def for_upstreams(self, session: Session, *, searched: bool) -> list[Tool]:
        """Our tools that a session with upstreams is shown beside theirs, or with `searched` in their place."""
        kinds = ("upstreams", "search") if searched else ("upstreams",)
        return self.allowed(session, [tool for tool in self._catalogue if tool.shown in kinds])

    def _shown(self, session: Session, tools: Iterable[AnyTool]) -> list[AnyTool]:
        return self._open_to_caller(self._shown_by_profile(session, tools), session)

    def _shown_by_profile(self, session: Session, tools: Iterable[AnyTool]) -> list[AnyTool]:
        project, context, modes = self._project_settings(session), self.context(session), self.modes(session)
        return [
            tool
            for tool in tools
            if not tool.is_among(context.excluded_tools)
            and not (tool.own_session and session.shared)
            and tool.refusal(project) is None
            and self._refusal_by_profile(tool, session, modes) is None
        ]

    def switched_off(self, session: Session) -> frozenset[str]:
        """Tools that a permission rule of where the session works refuses altogether."""
        root = session.rules_root
        found = self._claude.of(root)
        if found is None:
            return frozenset()
        known = self._known_off.get(root)
        if known is None or known[0] is not found:
            known = self._known_off[root] = found, switched_off(found, self._catalogue)
        return known[1]

    def refusal(self, tool: Tool, session: Session) -> str | None:
        """The reason why this session may not call a tool on any project; None if it may."""
        return (
            tool.refusal(self.settings)
            or self._refusal_of_caller(tool, session)
            or self._refusal_by_profile(tool, session, self.modes(session))
        )

    def _open_to_caller(self, tools: list[AnyTool], session: Session) -> list[AnyTool]:
        if not self.users.present and self.task_grants is None:
            return tools
        return [tool for tool in tools if self._refusal_of_caller(tool, session) is None]

    def _refusal_of_caller(self, tool: Tool, session: Session) -> str | None:
        """By who calls."""
        refused = self.users.refusal(tool.name, session.credential) if self.users.present else None
        if refused is None and self.task_grants is not None:
            refused = self.task_grants.refusal(tool, session.id)
        return refused

    def _refusal_by_profile(self, tool: Tool, session: Session, modes: Sequence[Mode]) -> str | None:
        refused = tool.refusal(self.settings)
        if refused is not None:
            return refused
        if tool.needs is not None and not getattr(self.settings, tool.needs):
            return (
                f"{tool.name} is disabled. The user can enable it with {tool.needs}: true in "
                "~/.serena/serena_config.yml."
            )
        for mode in modes:
            if tool.is_among(mode.excluded_tools) or (mode.read_only and tool.may_write):
                return (
                    f"{tool.name} is not available in the mode {mode.name!r}. switch_modes changes this session's "
                    "modes."
                )
        if tool.shown == "optional" and not tool.read_only and tool.name not in self._included(session):
            return f"{tool.name} is an optional tool and not enabled. The setting included_optional_tools enables it."
        return None

    def _included(self, session: Session) -> set[str]:
        parts = (self.settings, self._project_settings(session), self.context(session), *self.modes(session))
        allowed = {tool.name for tool in self._catalogue if tool.needs and getattr(self.settings, tool.needs)}
        return allowed.union(*(part.included_optional_tools for part in parts))

    def _project_settings(self, session: Session) -> SharedSettings:
        """Settings of the active project, if it is open; else the server's."""
        project = self._projects.opened(session.active_project.root) if session.active_project else None
        return project.settings if project else self.settings


class _Listing(NamedTuple):
    profile: tuple[object, ...]
    """What it was made of."""
    tools: list[Tool]


class Offered(NamedTuple):
    """The tools of a session's upstreams by name. `size`: of their schemas, in bytes."""

    tools: Mapping[str, UpstreamTool]
    size: int
    version: Hashable
    """What differs when the rest does."""


_METHODS: Mapping[str, Method] = {method: method for method in get_args(Method)}

NONE = Offered({}, 0, None)

HUB = "serena_central.hub.hub"

RUNS_WITHIN_S = 60.0
"""The hub's import takes half a second, and minutes on no machine."""


class UpstreamOffer:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        claude: ClaudeSettings,
        trust: Trust,
        settings: ServerSettings,
        build: "Callable[[], Hub]",
        taken: frozenset[str],
        bus: EventBus,
        *,
        own_urls: Sequence[str],
    ) -> None:
        """`build` makes the hub; `taken` are the names of our own tools; `own_urls`: where this server is reached."""
        self._claude = claude
        self._trust = trust
        self.settings = settings
        self._build = build
        self._taken = taken
        self._own_urls = own_urls
        self._wanted = anyio.Event()
        self._runs = anyio.Event()
        self._hub: Hub | None = None
        self._bus = bus
        self._suspended = SuspendedCalls()
        self._known: Lru[Hashable, Offered] = Lru(MOST_SETS)
        self._searches: Lru[Hashable, ToolSearch] = Lru(MOST_SETS)
        self._offers: Lru[Hashable, tuple[object, bool]] = Lru(MOST_SETS)
        """Servers, client and whether it is spared its own → whether any is offered."""

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs the hub from the moment that it is needed, until it is cancelled."""
        task_status.started()
        await self._wanted.wait()
        await import_patiently(HUB)  # with the SDK's client: half a second
        self._hub = await anyio.to_thread.run_sync(self._build)
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._hub.run)
            await tasks.start(self._suspended.run)
            await tasks.start(self._end_with_sessions, self._hub)
            self._runs.set()

    async def _end_with_sessions(
        self, hub: "Hub", *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """What belonged to a session alone ends with it."""

        def end(event: Event) -> None:
            if event.session:
                hub.session_ended(event.session)

        with self._bus.subscribe(SessionForgotten, SessionKilled, SessionDisconnected) as news:
            task_status.started()
            await follow("ending a session's MCP servers", news, end)

    @property
    def running(self) -> "Hub | None":
        """The hub, if anybody has needed it yet."""
        return self._hub if self._runs.is_set() else None

    async def hub(self) -> "Hub":
        """The hub, which is started if it does not run yet.

        Raises:
            HubUnavailable
        """
        self._wanted.set()
        with anyio.move_on_after(RUNS_WITHIN_S):
            await self._runs.wait()
        if not self._runs.is_set():
            raise HubUnavailable(RUNS_WITHIN_S)
        assert self._hub is not None
        return self._hub

    def are_configured(self, session: Session) -> bool:
        """Whether a session is offered any MCP server of the files that count for it. Some microseconds, and without
        the hub: most files have none but this server, or their client starts them itself."""
        root = session.rules_root
        return self.has_servers(root) and not session.through_hub and self._any_offered(root, session.client_name)

    def _any_offered(self, root: Path, client: str) -> bool:
        servers = self._claude.servers(root, trusted=self._trust.is_trusted(root))
        # What is kept holds its servers, so that no others can have this id meanwhile.
        key = id(servers), client, self.settings.hub.enabled
        kept = self._offers.get(key)
        if kept is None:
            usable = servers.usable().values()
            any_offered = any(self._is_offered(one.place.file, one.command, one.url, client) for one in usable)
            kept = self._offers[key] = servers, any_offered
        return kept[1]

    def _is_offered(self, file: str, command: Sequence[str], url: str, client: str) -> bool:
        # Late: who has no MCP server has nothing of the hub.
        from serena_central.hub.own_server import is_read_by_client, leads_to_ourselves

        if self.settings.hub.enabled == "auto" and is_read_by_client(file, client):
            return False
        return not leads_to_ourselves(command, url, self.settings.central_server_port, self._own_urls)

    def has_servers(self, root: Path) -> bool:
        """Whether any file that counts for a root has an MCP server. Some microseconds."""
        return self.settings.hub.enabled != "off" and self._claude.has_servers(root)

    def version(self, session: Session) -> Hashable:
        """What differs when other upstreams, or other tools of theirs, are offered to a session than before."""
        if not self.are_configured(session):
            return None
        root = session.rules_root
        servers = self._claude.servers(root, trusted=self._trust.is_trusted(root))
        return tuple(servers.usable()), id(servers), self._hub.changes if self._hub is not None else 0

    async def offered(self, session: Session, *, wait: bool = False) -> Offered:
        """The tools of a session's upstreams, whatever rules say. With `wait` it waits a while for upstreams whose
        tools are not known yet."""
        if not self.are_configured(session):
            return NONE
        hub = await self.hub()
        return await self._offered(hub, self.specs(hub, session), self.caller(session), wait=wait)

    async def tools_of(self, root: Path) -> Mapping[str, UpstreamTool]:
        """The tools of a root's upstreams by name, whatever rules say. Waits a while for those that are not known."""
        if not self.has_servers(root):
            return {}
        from serena_central.hub.callers import Caller

        hub = await self.hub()
        specs = list(hub.of(root).specs.values())
        return (await self._offered(hub, specs, Caller(session="", root=root), wait=True)).tools

    async def _offered(self, hub: "Hub", specs: "list[UpstreamSpec]", caller: "Caller", *, wait: bool) -> Offered:
        known = await hub.known(specs, caller, hub.policy.learn_wait_s if wait else 0)
        version = tuple((spec.name, spec.key, id(known.get(spec.name))) for spec in specs)
        found = self._known.get(version)
        if found is None:
            found = self._known[version] = self._made(hub, specs, known, version)
        return found

    def specs(self, hub: "Hub", session: Session) -> "list[UpstreamSpec]":
        """The upstreams of a session. One that came through a hub has none: see `hub/own_server`."""
        from serena_central.hub.own_server import is_read_by_client

        if session.through_hub:
            return []
        found = list(hub.of(session.rules_root).specs.values())
        if self.settings.hub.enabled == "auto":
            found = [spec for spec in found if not is_read_by_client(spec.file, session.client_name)]
        return found

    def _made(self, hub: "Hub", specs: "list[UpstreamSpec]", known: Mapping[str, Any], version: Hashable) -> Offered:
        from serena_central.hub.offered_tools import offered_tools

        by_name = {spec.name: spec for spec in specs}
        tools: dict[str, UpstreamTool] = {}
        for name, one in offered_tools(known, self._taken, hub.policy.tools).items():
            spec = by_name[one.server]
            tools[name] = upstream_tool(
                spec, name, one, partial(self._call, hub, spec, one.own_name), partial(hub.masked, spec)
            )
        size = sum(len(msgspec.json.encode(tool.wire)) for tool in tools.values())
        return Offered(tools, size, version)

    async def _call(
        self, hub: "Hub", spec: "UpstreamSpec", tool: str, call: Any, arguments: dict[str, Any]
    ) -> PassedOn:
        with waiting_for(lambda: (f"{quoted(spec.name)} is answering {quoted(tool)}", None)):
            return await self._passed_on(hub, spec, tool, call, arguments)

    async def _passed_on(
        self, hub: "Hub", spec: "UpstreamSpec", tool: str, call: Any, arguments: dict[str, Any]
    ) -> PassedOn:
        session, channel, masked = call.session, client_channel(), partial(hub.masked, spec)
        may_be_asked = channel.offers("sampling/createMessage") or channel.offers("elicitation/create")
        if session.era == "modern" and may_be_asked:

            async def work(ask: Callable[[ClientRequest], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
                return await hub.call(spec, tool, arguments, self._caller(session, channel, ask))

            return PassedOn(await self._suspended.call(channel, session.id, call.tool, arguments, work), masked)
        return PassedOn(await hub.call(spec, tool, arguments, self.caller(session)), masked)

    async def want_logs(self, session: Session, level: str) -> None:
        """A session's client wants log messages of this level. What starts later is asked for them by its calls."""
        if self.running is not None and self.are_configured(session):
            await self.running.want_logs(self.specs(self.running, session), level, self.caller(session))

    async def listed(self, session: Session) -> tuple[list[UpstreamTool], bool]:
        """The tools to list for a session, before rules; with True none of them, but those of ours that find them."""
        offered = await self.offered(session, wait=True)
        way = self.settings.hub.listing
        searched = bool(offered.tools) and (way == "search" or (way == "auto" and offered.size > LISTED_BYTES))
        return ([] if searched else list(offered.tools.values())), searched

    async def find(self, session: Session, name: str) -> UpstreamTool | None:
        """The tool of an upstream of this name, if the session has it. The server that the name begins with is started
        if its tools are not known yet.

        Raises:
            UpstreamUnavailable: it can't be started.
        """
        found = (await self.offered(session)).tools.get(name)
        if found is None and self.are_configured(session):
            from serena_central.hub.names import server_prefix

            hub, caller = await self.hub(), self.caller(session)
            specs = self.specs(hub, session)
            unlisted = hub.unlisted(specs, caller)
            named = [spec for spec in specs if spec.name in unlisted and name.startswith(server_prefix(spec.name))]
            for spec in named:
                await hub.start(spec, caller)
            found = (await self.offered(session)).tools.get(name) if named else None
        return found

    async def unlisted(self, session: Session) -> list[str]:
        """A sentence for each upstream of a session whose tools are not known: why, and what to do."""
        if not self.are_configured(session):
            return []
        from serena_central.hub.names import server_prefix

        hub = await self.hub()
        found = hub.unlisted(self.specs(hub, session), self.caller(session))
        return [_unlisted(one, server_prefix(name)) for name, one in found.items()]

    async def servers(self, session: Session) -> list[str]:
        """Names of a session's upstreams."""
        return [spec.name for spec in self.specs(await self.hub(), session)] if self.are_configured(session) else []

    async def search(self, session: Session, query: str, limit: int) -> list[UpstreamTool]:
        """The tools that fit words best."""
        from serena_central.hub.search import ToolSearch

        offered = await self.offered(session, wait=True)
        index = self._searches.get(offered.version)
        if index is None:
            listed = {name: tool.wire for name, tool in offered.tools.items()}
            index = await anyio.to_thread.run_sync(ToolSearch, listed)  # of 4 MB it takes seconds
            self._searches[offered.version] = index
        return [offered.tools[name] for name in index.find(query, limit)]

    def caller(self, session: Session) -> "Caller":
        """A session as the hub sees it, in the midst of a call."""
        channel = client_channel()

        async def ask(request: ClientRequest) -> dict[str, Any]:
            return (await channel.ask({"upstream": request}))["upstream"]

        return self._caller(session, channel, ask)

    def _caller(
        self, session: Session, channel: ClientChannel, ask: Callable[[ClientRequest], Awaitable[dict[str, Any]]]
    ) -> "Caller":
        from serena_central.hub.callers import Caller

        root = session.rules_root
        hears = listener()  # of this call: what its upstream reports is heard in another task

        def progress(message: str, part: float | None) -> None:
            if hears is not None:
                hears(escaped(message), part)

        async def question(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            known = _METHODS.get(method)
            if known is None or not channel.offers(known) or (known == "roots/list" and session.era == "modern"):
                if known == "roots/list":
                    return {"roots": [{"uri": root.as_uri(), "name": root.name}]}
                raise UpstreamQuestionRefused(method, f"the client {session.client_name} does not support it")
            try:
                return await ask(ClientRequest(known, params))
            except ClientCannotAnswer as error:
                raise UpstreamQuestionRefused(method, str(error)) from error

        return Caller(
            session=session.id,
            root=root,
            client=session.client_name,
            progress=progress,
            ask=question,
            log=cast("Log", channel.log),
            log_level=channel.log_level(),
        )


def _unlisted(one: "UpstreamSnapshot", prefix: str) -> str:
    why = one.why or ("it is starting" if one.state == "starting" else "it has not started yet")
    remedy = (
        f"It starts again after {restart_command(one.name)}"
        if one.state == "failed"
        else f"A call of any tool whose name begins with {prefix} starts it"
    )
    return f"The tools of {quoted(one.name)} are not known: {escaped(why)}. {remedy}."
