"""The composition root: builds every part of the server from settings and places, and runs them in one lifespan.

Nothing else knows all parts. Parts start from the bottom up and stop from the top down, so that each finds what it
stands on, and what is said while stopping is still recorded.
"""

import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from serena_central.access.browsers import Browsers
from serena_central.access.connections import HEAD_BYTES, Connections
from serena_central.access.guard import Guard, refuse_open_binding
from serena_central.access.headers import SafePages
from serena_central.access.proof import Prover
from serena_central.access.protocols import bounded_protocol
from serena_central.access.token import Token, obtain_token
from serena_central.analysis.analysis_runs import Surveys
from serena_central.analysis.collector import Collections
from serena_central.analysis.validation import Validation
from serena_central.config.layers import Loaded
from serena_central.config.load import serena_home
from serena_central.config.profiles import Profiles, load_profiles
from serena_central.config.settings import ServerSettings
from serena_central.core.descriptors import Descriptors, limit
from serena_central.core.event_kinds import ProjectSettingsProblem, ServerSettingsProblem
from serena_central.core.events import EventBus, Severity
from serena_central.core.groups import only_cause
from serena_central.core.logs import log_event
from serena_central.core.places import Places
from serena_central.core.running import running_time
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from serena_central.files.shared_trees import SharedTrees
from serena_central.files.watch import Watches
from serena_central.lsp.installers.auto import AutoInstaller
from serena_central.mcp_server.adapter import Adapter
from serena_central.mcp_server.asking import TrustQuestions
from serena_central.mcp_server.endpoint import McpEndpoint
from serena_central.mcp_server.transports import HandshakeTransports
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.build import ProjectBuilder
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.new_servers import Arrivals
from serena_central.projects.registry import KnownProject, ProjectRegistry
from serena_central.projects.registry_store import ProjectRecorder
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.warming.warm_up_jobs import WarmUp
from serena_central.projects.warming.warm_up_roots import choose
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.views import SymbolViews
from serena_central.sessions.warming import WarmOnStart
from serena_central.store.store import Store
from serena_central.symbols.syntax.reader import SyntaxReader
from serena_central.tools.baselines import Baselines
from serena_central.tools.call import Services, ToolCaller
from serena_central.tools.catalogue import CATALOGUE
from serena_central.tools.offer import Offer
from serena_central.tools.once import Once, called_once
from serena_central.web.answers import no_such_route
from serena_central.web.api import Api
from serena_central.web.hooks import Hooks
from serena_central.web.metrics import Metrics
from serena_central.web.pages.page import BELOW, Parts
from serena_central.web.pages.table import Dashboard
from serena_central.web.presence import Presence
from serena_central.web.routes import OPEN_PATHS, routes
from serena_central.web.tally import Tally
from serena_central.web.warming import Warming

logger = logging.getLogger(__name__)

Run = Callable[..., Coroutine[Any, Any, None]]
"""A part's `run`: takes `task_status`, and runs until it is cancelled."""

MCP_PATH = "/mcp"

KEEP_ALIVE_S = 120
"""An agent thinks between two calls; it should find its connection again."""

TICKS_PER_S = 10
"""Of uvicorn's main loop."""

CALLS_END_S = 3.0
"""How long running calls may go on once the server was told to stop; then they are answered with an error."""

STOP_S = 5.0
"""After this long what still runs is cut off."""


@dataclass(frozen=True)
class Central:
    """All parts of one server, built and not yet running. `app` is what a web server serves; its lifespan runs them."""

    token: Token
    bus: EventBus
    store: Store
    pool: LanguageServerPool
    projects: ProjectRegistry
    sessions: SessionManager
    caller: ToolCaller
    metrics: Metrics
    endpoint: McpEndpoint
    presence: Presence
    dashboard: Dashboard
    connections: Connections
    descriptors: Descriptors
    app: Starlette

    async def let_go(self) -> None:
        """What keeps connections open ends: streams at once, running calls after a while, each with an answer."""
        self.endpoint.close_streams()
        self.presence.close()
        self.dashboard.live.close()
        await anyio.sleep(CALLS_END_S)
        for session in self.sessions.sessions():
            for call in list(session.running.values()):
                call.cancel("The server is stopping. Call again when it is back.")


def build(
    loaded: Loaded[ServerSettings], places: Places, *, stop: Callable[[], None], applier: Applier | None = None
) -> Central:
    """Builds the server. `stop` begins its stop when somebody asks for that over /api, and must return at once.
    `applier` makes the edits: tests give one that dies on the way.

    Raises:
        ConfigError: the settings can't be used together, or the token's file is not safe.
    """
    settings = loaded.value
    places.create()
    token = obtain_token(places.token_file)
    refuse_open_binding(settings.central_server_host, token, settings.allowed_roots)
    bus = EventBus()
    store = Store(places.database, bus, url=settings.database_url, policy=settings.retention)
    pool = LanguageServerPool(bus=bus, places=places, policy=settings.pool)
    installer = AutoInstaller(places, bus, allowed=settings.auto_install)
    applier = applier or Applier(Journal(places.journal))
    once = Once()
    history = EditHistory(applier, store, bus, recall=once)
    root_settings = RootSettings(loaded, places, changed=lambda repo: _tell(repo, projects, bus))
    super_repos = root_settings.super_repos
    syntax = SyntaxReader()
    watches = Watches()
    shared_trees = SharedTrees(watches)
    builder = ProjectBuilder(
        settings=root_settings,
        pool=pool,
        syntax=syntax,
        places=places,
        bus=bus,
        installer=installer,
        applier=applier,
        watches=watches,
        shared_trees=shared_trees,
        edited=history.applied,
    )
    projects = ProjectRegistry(
        bus=bus,
        build=builder.build,
        stamp=builder.stamp,
        interest=pool,
        allowed_roots=map(Path, settings.allowed_roots),
        own_folders=[places.home, serena_home()],
        known=[KnownProject(Path(root).name, root) for root in settings.projects],
    )
    arrivals = Arrivals(projects.open_projects, places, bus)
    sessions = SessionManager(bus=bus, interest=projects, policy=settings.sessions, steady=running_time)
    collections = Collections(places.cache)
    validation = Validation(projects, super_repos, collections)
    surveys = Surveys(projects, super_repos, collections, validation, bus)
    services = Services(
        projects=projects,
        super_repos=super_repos,
        sessions=sessions,
        pool=pool,
        settings=settings,
        bus=bus,
        views=SymbolViews(store),
        history=history,
        collections=collections,
        validation=validation,
        baselines=Baselines(),
        claude=root_settings.claude,
        offer=Offer(settings, _profiles(bus), projects, super_repos),
    )
    caller = ToolCaller(services, record=store.writer.put, once=once)
    version = metadata.version("serena-central")
    questions = TrustQuestions(root_settings.trust, projects)
    adapter = Adapter(sessions=sessions, caller=caller, version=version, questions=questions)
    recorder = SessionRecorder(sessions, store, bus)
    project_recorder = ProjectRecorder(projects, store, bus)
    transports = HandshakeTransports(adapter.server, sessions=sessions, openings=recorder)
    endpoint = McpEndpoint(adapter.server, transports, adapter.subscriptions)
    presence = Presence(sessions, version, calls_once=called_once(CATALOGUE))
    warm_up = WarmUp(projects, places, memory_budget_bytes=pool.memory_budget_bytes)
    when = settings.warm_on_session_start
    on_start = WarmOnStart(
        bus, warm_up, lambda folder: choose(projects, super_repos, folder, only_default=when == "default")
    )
    started_at = time.time()
    connections = Connections(descriptors=limit(), clock=time.monotonic)
    descriptors = Descriptors(bus)
    api = Api(
        version=version,
        bus=bus,
        store=store,
        pool=pool,
        projects=projects,
        sessions=sessions,
        caller=caller,
        history=history,
        prover=Prover(token, _proven_names(settings)),
        connections=connections,
        descriptors=descriptors,
        stop=stop,
        started_at=started_at,
    )
    tally = Tally()
    bus.tap(tally.take)
    bus.tap(log_event)
    metrics = Metrics(version, started_at, tally, store, pool, projects, sessions)
    dashboard = Dashboard(
        Parts(
            version=version,
            started_at=started_at,
            loaded=loaded,
            places=places,
            bus=bus,
            store=store,
            pool=pool,
            projects=projects,
            super_repos=super_repos,
            trust=root_settings.trust,
            claude=root_settings.claude,
            warm_up=warm_up,
            sessions=sessions,
            caller=caller,
            history=history,
            surveys=surveys,
            tally=tally,
            browsers=Browsers(places.browsers_file, token.credential),
        )
    )
    bus.tap(dashboard.live.take)
    app = Starlette(
        routes=[
            Route(MCP_PATH, endpoint),
            Route(f"{MCP_PATH}/", endpoint),
            *routes(
                api,
                metrics,
                presence,
                hooks=Hooks(projects, super_repos, sessions),
                warming=Warming(warm_up, projects, super_repos),
                dashboard=dashboard,
            ),
        ],
        middleware=[
            Middleware(SafePages, below=BELOW),
            Middleware(
                Guard,
                token=token,
                hosts=_own_names(settings),
                origins=_own_origins(settings),
                open_paths=OPEN_PATHS,
                door=dashboard.door(),
            ),
        ],
        exception_handlers={HTTPException: no_such_route},
        lifespan=lambda _app: _running_all(
            stop,
            running_time.run,
            store.run,
            pool.run,
            installer.run,
            syntax.run,
            history.run,
            watches.run,
            shared_trees.run,
            projects.run,
            arrivals.run,
            project_recorder.run,
            warm_up.run,
            surveys.run,
            *([on_start.run] if when != "off" else []),
            recorder.run,
            sessions.run,
            endpoint.run,
        ),
    )
    return Central(
        token,
        bus,
        store,
        pool,
        projects,
        sessions,
        caller,
        metrics,
        endpoint,
        presence,
        dashboard,
        connections,
        descriptors,
        app,
    )


@asynccontextmanager
async def _running_all(stop: Callable[[], None], *runs: Run) -> AsyncGenerator[None]:
    """The one lifespan: starts each part when the one before it says that it runs, and ends them in reverse order.

    A part that fails ends them all: a server that answers without one of its parts would answer wrongly.
    """
    try:
        async with AsyncExitStack() as stack:
            for run in runs:
                await stack.enter_async_context(_running(run))
            yield
    except Exception as error:
        # Each part wraps what failed in a group of its own, too deep for Python to print what is inside.
        logger.error("A part of the server failed, and so the server stops", exc_info=only_cause(error))
        stop()
        raise


@asynccontextmanager
async def _running(run: Run) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        yield
        tasks.cancel_scope.cancel()


def _tell(repo: SuperRepo, projects: ProjectRegistry, bus: EventBus) -> None:
    """A super-repo's configuration was read: its modules are known from now on, and what is wrong with it is said."""
    for problem in repo.problems:
        bus.publish(ProjectSettingsProblem(message=str(problem), severity=Severity.WARNING, project=repo.name))
    projects.remember(KnownProject(repo.name, str(repo.root)))
    for module in repo.modules.values():
        projects.remember(KnownProject(module.name, str(module.root)))


def _profiles(bus: EventBus) -> Profiles:
    profiles = load_profiles(serena_home())
    for problem in profiles.problems:
        bus.publish(ServerSettingsProblem(message=problem, severity=Severity.WARNING))
    return profiles


def _own_names(settings: ServerSettings) -> list[str]:
    """Names besides loopback that clients may call this server by."""
    names = [settings.central_server_host, *settings.central_server_names]
    if settings.central_server_url:
        names.append(urlsplit(settings.central_server_url).netloc)
    return names


def _proven_names(settings: ServerSettings) -> list[str]:
    """Those of its names that the server proves to be called by, each with its port: a name for all ports would be one
    for everybody who listens on this machine."""
    names = [name for name in settings.central_server_names if name.rpartition(":")[2].isdigit()]
    if settings.central_server_url:
        parts = urlsplit(settings.central_server_url)
        names.append(
            f"{parts.netloc.removesuffix(f':{parts.port}')}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        )
    return names


def _own_origins(settings: ServerSettings) -> list[str]:
    """Of pages that a proxy in front of this server serves from it."""
    if not settings.central_server_url:
        return []
    parts = urlsplit(settings.central_server_url)
    return [f"{parts.scheme}://{parts.netloc}"]


class CentralServer(uvicorn.Server):
    """uvicorn, stopping in order: streams first, then running calls, each with an answer, within `STOP_S`."""

    def __init__(self, central: Central) -> None:
        self._central = central
        super().__init__(
            uvicorn.Config(
                central.app,
                loop="uvloop",
                http=bounded_protocol(central.connections),
                h11_max_incomplete_event_size=HEAD_BYTES,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(STOP_S),
            )
        )

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_S == 0:
            self._central.connections.close_late()
            self._central.descriptors.check()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._central.let_go)
            await super().shutdown(sockets)
            tasks.cancel_scope.cancel()
