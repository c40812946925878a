"""The composition root: builds every part of the server from settings and places, a factory for each layer.

Nothing else knows all parts. A factory takes what lies below, adds what it builds to `runs`, in the order in which the
parts start, and returns it. A part that few users need is imported, built and added only where a setting wants it, as
`_warming_on_start` is: elsewhere it costs nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from serena_central.access.auth import AuthGate, refuse_open_binding
from serena_central.access.browsers import Browsers
from serena_central.access.connections import Connections
from serena_central.access.proof import Prover
from serena_central.access.token import Token, obtain_token
from serena_central.analysis.analysis_runs import AnalysisRuns
from serena_central.analysis.collector import Collections
from serena_central.analysis.local_analyses import LocalAnalyses
from serena_central.analysis.validation import Validation
from serena_central.app.application import Application
from serena_central.app.dispatch import Dispatch
from serena_central.app.lifespan import Run, running_all
from serena_central.app.names import own_names, own_origins, proven_names
from serena_central.app.recording import Recording
from serena_central.app.takeover import TakeOver
from serena_central.config.layers import Loaded
from serena_central.config.load import serena_home
from serena_central.config.profiles import Profiles, load_profiles
from serena_central.config.settings import ServerSettings
from serena_central.core.clock import Uptime
from serena_central.core.collector import Collector
from serena_central.core.descriptors import Descriptors, limit
from serena_central.core.errors import ProjectRefused
from serena_central.core.event_kinds import ProjectSettingsProblem, ServerSettingsProblem
from serena_central.core.events import EventBus, Severity
from serena_central.core.logs import log_event
from serena_central.core.places import Places
from serena_central.core.quoting import quoted
from serena_central.core.rest import rest
from serena_central.core.running_time import running_time
from serena_central.core.start_up import StartUp
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from serena_central.files.corpus import Corpora
from serena_central.files.path_watch import PathWatch
from serena_central.files.shared_trees import SharedTrees
from serena_central.files.watch import Watches
from serena_central.lsp.catalogue import is_read
from serena_central.lsp.installers.auto import AutoInstaller
from serena_central.mcp_server.endpoint import McpEndpoint
from serena_central.mcp_server.offered import Prompts, Resources
from serena_central.mcp_server.plain_methods import PlainMethods
from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.transports import HandshakeTransports
from serena_central.mcp_server.trust_questions import TrustQuestions
from serena_central.pool.budget import CachedMemory
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.build import ProjectBuilder
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.editing.shared_calls import SharedCalls
from serena_central.projects.new_servers import NewServers
from serena_central.projects.project import Project
from serena_central.projects.registry import KnownProject, ProjectRegistry
from serena_central.projects.registry_store import ProjectRecorder
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.trust.trust_dialog import LocalTrustDialog
from serena_central.projects.warming.warm_up_jobs import LocalWarming, WarmUp
from serena_central.sessions.accounts import Accounts
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.other_fronts import OtherFronts
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.users import Users
from serena_central.store.store import Store
from serena_central.symbols.syntax.reader import SyntaxReader
from serena_central.tools.call import ToolCaller
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.context import Services
from serena_central.tools.families import CATALOGUE
from serena_central.tools.gating import Gating
from serena_central.tools.idempotency import Idempotency, called_once
from serena_central.tools.live_settings import LiveSettings
from serena_central.tools.offer import Offer, UpstreamOffer
from serena_central.tools.symbol_answers import SymbolViews
from serena_central.tools.task_offer import TaskOffer
from serena_central.tools.tool_run import ToolHost
from serena_central.web.accounts import AccountRoutes
from serena_central.web.alert_switch import AlertSwitch
from serena_central.web.api import Api
from serena_central.web.calls import Calls
from serena_central.web.cluster import ClusterRoutes
from serena_central.web.cluster_view import ClusterView
from serena_central.web.gates import Gates
from serena_central.web.hooks import Hooks
from serena_central.web.memory_record import MemoryRecord
from serena_central.web.metrics import Metrics
from serena_central.web.pages.dashboard import Dashboard
from serena_central.web.plans import Plans
from serena_central.web.presence import Presence
from serena_central.web.recall import Recall
from serena_central.web.responses import no_such_route
from serena_central.web.routes import OPEN_PATHS, routes
from serena_central.web.tally import Tally
from serena_central.web.tasks import Tasks
from serena_central.web.transcripts import Transcripts
from serena_central.web.upstreams import Upstreams
from serena_central.web.warming import Warming
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.agents.day_budgets import DayBudgets
    from serena_central.agents.plans.plan_runs import PlanRuns
    from serena_central.agents.scheduler import Scheduler
    from serena_central.agents.tasks import Runner
    from serena_central.hub.hub import Hub
    from serena_central.mcp_server.adapter import Adapter


@dataclass(frozen=True)
class Cluster:
    """What carries tools out in place of this process. `host` makes it of the services and of what would do it in this
    process; `view` is what people are shown."""

    host: Callable[[Services, ToolHost], ToolHost]
    view: ClusterView


@dataclass(frozen=True)
class _Base:
    """The base services: store, events, settings."""

    loaded: Loaded[ServerSettings]
    places: Places
    bus: EventBus
    store: Store

    @property
    def settings(self) -> ServerSettings:
        return self.loaded.value


@dataclass(frozen=True)
class _Projects:
    """Language servers and the projects that use them."""

    pool: LanguageServerPool
    registry: ProjectRegistry
    root_settings: RootSettings
    installer: AutoInstaller
    history: EditHistory
    warm_up: WarmUp
    idempotency: Idempotency


def build(
    loaded: Loaded[ServerSettings],
    places: Places,
    *,
    stop: Callable[[], None],
    applier: Applier | None = None,
    catalogue: Catalogue = CATALOGUE,
    resources: Resources | None = None,
    prompts: Prompts | None = None,
    cluster: Cluster | None = None,
) -> Application:
    """Builds the server. `stop` starts its shutdown when /api is asked for it, and must return at once.
    `applier` writes the edits (tests pass one that crashes half-way); `catalogue` holds the tools. `resources` and
    `prompts` are what MCP clients are offered in place of the server's own. With a `cluster`
    this process opens no projects.

    Raises:
        ConfigError: the settings can't be used together, or the token's file is not safe.
    """
    settings = loaded.value
    places.create()
    token = obtain_token(places.token_file)
    refuse_open_binding(settings.central_server_host, token, settings.allowed_roots)
    runs: list[Run] = [running_time.run]
    start_up = StartUp()
    base = _base(runs, loaded, places, start_up)
    shared = SharedCalls(base.store, settings.front_name) if base.store.shared else None
    applier = applier or Applier(Journal(places.journal), fence=shared)
    projects = _projects(runs, base, applier, shared=shared, opens=cluster is None)
    services = _services(runs, base, projects, catalogue)
    _warming_on_start(runs, services)
    alerts = AlertSwitch(settings.alerts, base.bus)
    runs.append(alerts.run)
    live_settings = LiveSettings(services, [alerts.take])
    recording = Recording(services)
    runs += recording.at_start()
    caller = ToolCaller(
        services,
        record=base.store.writer.put,
        idempotency=projects.idempotency,
        transcript=recording.put,
        host=None if cluster is None else partial(cluster.host, services),
    )
    collector = Collector(services.sessions.any_call_runs)
    caller.on_end, projects.registry.on_ended = collector.call_ended, collector.much_ended
    runs.append(collector.run)
    recorder = SessionRecorder(services.sessions, services.store, services.bus)
    endpoint = _mcp(runs, services, caller, token, recorder, resources, prompts)
    if places.begun_file.exists():
        runs.append(services.gating.session_hooks(services).run)
    start_up.is_busy = services.sessions.any_call_runs
    rest.is_busy = partial(_is_busy, services, projects)
    runs.append(start_up.run)
    services.tasks.build = partial(_scheduler, services, caller, token, recording)
    services.tasks.build_plans = partial(_plans, services)
    runs.append(services.tasks.run)
    view = None if cluster is None else cluster.view
    return _faces(runs, services, caller, endpoint, token, recorder, stop, live_settings, view, collector)


def _is_busy(services: Services, projects: _Projects) -> bool:
    """Whether something goes on that may take longer than nothing happens before this process rests."""
    tasks = services.tasks.running
    return (
        services.sessions.any_call_runs()
        or projects.pool.is_leased
        or projects.installer.is_working
        or (tasks is not None and tasks.is_working)
    )


@dataclass(frozen=True)
class ProjectParts:
    """The parts of a process that runs tools on projects and has no faces: a project host's."""

    services: Services
    idempotency: Idempotency
    runs: list[Run]


def build_projects(loaded: Loaded[ServerSettings], places: Places, applier: Applier) -> ProjectParts:
    """Builds the parts that tools on projects need.

    Raises:
        ConfigError: the settings can't be used together.
    """
    places.create()
    runs: list[Run] = [running_time.run]
    base = _base(runs, loaded, places)
    projects = _projects(runs, base, applier)
    services = _services(runs, base, projects, CATALOGUE)
    return ProjectParts(services, projects.idempotency, runs)


def _base(runs: list[Run], loaded: Loaded[ServerSettings], places: Places, start_up: StartUp | None = None) -> _Base:
    settings, bus = loaded.value, EventBus()
    store = Store(
        places.database,
        bus,
        url=settings.database_url,
        shared=bool(settings.front_name),
        policy=settings.retention,
        start_up=start_up,
    )
    runs.append(store.run)
    return _Base(loaded, places, bus, store)


def _projects(
    runs: list[Run], base: _Base, applier: Applier, *, shared: SharedCalls | None = None, opens: bool = True
) -> _Projects:
    settings, places, bus = base.settings, base.places, base.bus
    pool = LanguageServerPool(bus=bus, places=places, policy=settings.pool)
    installer = AutoInstaller(places, bus, allowed=settings.auto_install)
    idempotency = Idempotency(shared)
    path_watch = PathWatch()

    def changed(repo: SuperRepo) -> None:
        _tell(repo, registry, bus)

    root_settings = RootSettings(base.loaded, places, changed=changed, watch=path_watch)
    history = EditHistory(applier, base.store, bus, recall=idempotency, access=root_settings.claude.access)
    syntax = SyntaxReader()
    watches = Watches()
    shared_trees, corpora = SharedTrees(watches, path_watch, is_read), Corpora()
    pool.count_caches(
        lambda: [CachedMemory("texts of searched files", corpora.size_bytes, corpora.idle_s, corpora.drop)]
    )
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
        corpora=corpora,
        edited=history.applied,
        amended=history.amended,
    )
    registry = ProjectRegistry(
        bus=bus,
        build=builder.build if opens else _held_elsewhere,
        stamp=root_settings.stamp,
        interest=pool,
        allowed_roots=map(Path, settings.allowed_roots),
        own_folders=[places.home, serena_home()],
        known=[KnownProject(Path(root).name, root) for root in settings.projects],
    )
    arrivals = NewServers(registry.open_projects, places, bus)
    recorder = ProjectRecorder(registry, base.store, bus)
    warm_up = WarmUp(
        LocalWarming(registry, root_settings.super_repos), places, memory_budget_bytes=pool.memory_budget_bytes
    )
    runs += [
        pool.run,
        installer.run,
        syntax.run,
        history.run,
        watches.run,
        path_watch.run,
        shared_trees.run,
        corpora.run,
        registry.run,
        arrivals.run,
        recorder.run,
        warm_up.run,
    ]
    return _Projects(pool, registry, root_settings, installer, history, warm_up, idempotency)


def _held_elsewhere(root: Path) -> Project:
    raise ProjectRefused(
        f"{quoted(root)} is held by a project host of the cluster, and not opened here: tools work on it, but not what "
        "tasks and plans check by themselves, nor changes of its settings in the dashboard."
    )


def _services(runs: list[Run], base: _Base, built: _Projects, catalogue: Catalogue) -> Services:
    settings, bus, projects, repos = base.settings, base.bus, built.registry, built.root_settings.super_repos
    users = Users()
    collections = Collections(base.places.cache)
    claude = built.root_settings.claude
    validation = Validation(projects, repos, collections, claude.access)
    analyses = LocalAnalyses(projects, repos, collections, validation, rules=claude.path_rules)
    analysis_runs = AnalysisRuns(analyses, collections.folder, bus)
    gating = Gating(built.root_settings.trust, bus, base.places.halted_file)
    runs += [analysis_runs.run, gating.run]
    upstreams = _upstreams(base, built, catalogue)
    runs.append(upstreams.run)
    return Services(
        version=metadata.version("serena-central"),
        started_at=time.time(),
        uptime=Uptime(),
        places=base.places,
        bus=bus,
        store=base.store,
        pool=built.pool,
        projects=projects,
        super_repos=repos,
        trust=built.root_settings.trust,
        claude=claude,
        history=built.history,
        warm_up=built.warm_up,
        sessions=SessionManager(
            bus=bus,
            interest=projects,
            policy=settings.sessions,
            steady=running_time,
            front=settings.front_name,
            users=users,
        ),
        views=SymbolViews(base.store),
        collections=collections,
        validation=validation,
        analysis_runs=analysis_runs,
        catalogue=catalogue,
        gating=gating,
        installer=built.installer,
        root_settings=built.root_settings,
        offer=Offer(settings, catalogue, _profiles(bus), projects, repos, claude, users),
        users=users,
        upstreams=upstreams,
        tasks=TaskOffer(claude, built.root_settings.trust),
    )


def _upstreams(base: _Base, built: _Projects, catalogue: Catalogue) -> UpstreamOffer:
    """What sessions are offered of other MCP servers. The hub itself is made when the first one is configured."""
    settings, claude, trust = base.settings, built.root_settings.claude, built.root_settings.trust

    def hub() -> "Hub":
        from serena_central.claude_config.effective import Effective
        from serena_central.hub.hub import Configuration, Hub

        def configured(root: Path) -> Configuration | None:
            if not claude.has_servers(root):
                return None
            trusted = trust.is_trusted(root)
            found = claude.of(root) or Effective(root, claude.locations, ())
            return Configuration(claude.servers(root, trusted=trusted), found, trusted)

        made = Hub(
            configured=configured,
            bus=base.bus,
            places=base.places,
            policy=settings.hub,
            version=metadata.version("serena-central"),
            port=settings.central_server_port,
            own_urls=own_origins(settings),
            client_logs=claude.locations.user_folder / "mcp-logs",
            mark=built.pool.mark,
            started=built.pool.measure_soon,
        )
        built.pool.share_budget(made.processes)
        return made

    taken = frozenset(catalogue.names())
    return UpstreamOffer(claude, trust, settings, hub, taken, base.bus, own_urls=own_origins(settings))


def _scheduler(services: Services, caller: ToolCaller, token: Token, recording: Recording) -> "Scheduler":
    """Runs tasks. Made when the first one is asked for."""
    from serena_central.agents.runners.claude_code import ClaudeCode
    from serena_central.agents.runners.codex import Codex
    from serena_central.agents.runners.gemini import Gemini
    from serena_central.agents.runners.messages_api import MessagesApi
    from serena_central.agents.runners.scripted import ScriptedRunner
    from serena_central.agents.scheduler import Scheduler
    from serena_central.tools.task_calls import TaskCalls
    from serena_central.tools.task_grants import TaskGrants
    from serena_central.tools.task_surroundings import surroundings_of
    from serena_central.tools.task_verification import TaskVerifier
    from serena_central.tools.task_worktrees import TaskWorktrees

    policy = services.settings.agents
    services.offer.task_grants = TaskGrants()
    calls = TaskCalls(services, caller, token.credential)
    verifier = services.tasks.verifier = TaskVerifier(services.projects, services.history, services.sessions)
    around = surroundings_of(services.settings, services.places, services.claude, services.trust)
    transcripts, services.tasks.beside = recording.for_tasks()
    caller.transcript = recording.put
    runners: list[Runner] = [
        ClaudeCode(policy, around),
        Codex(policy, around),
        Gemini(policy, around),
        MessagesApi(policy, around, calls, transcripts),
        ScriptedRunner(policy.script_file, calls.call),
    ]
    return Scheduler(
        policy=policy,
        runners={runner.name: runner for runner in runners},
        bus=services.bus,
        store=services.store,
        folder=services.places.tasks,
        grants=services.offer.task_grants,
        begin=calls.session,
        end=calls.end_session,
        isolation=TaskWorktrees(services.projects, services.places.worktrees),
        budgets=_day_budgets(services),
        transcripts=transcripts,
        verifier=verifier,
        hooks=calls,
        front=services.settings.front_name,
    )


def _day_budgets(services: Services) -> "DayBudgets":
    from serena_central.agents.day_budgets import DayBudgets

    settings, check = services.settings, None
    if settings.usage_budgets:
        from serena_central.transcripts.budgets import BudgetCheck
        from serena_central.transcripts.pricing import Prices
        from serena_central.transcripts.roots import all_roots

        roots = partial(all_roots, services.places.transcripts)
        check = BudgetCheck(services.places.usage_file, roots, Prices(settings.prices), settings.usage_budgets)
    return DayBudgets(services.store, settings.agents.daily_usd, check)


def _plans(services: Services, scheduler: "Scheduler") -> "PlanRuns":
    """Runs plans: waves of tasks. Made with the scheduler."""
    from serena_central.agents.plans.plan_runs import PlanRuns
    from serena_central.tools.plan_ground import PlanGround

    assert services.tasks.verifier is not None
    ground = PlanGround(services, scheduler, services.tasks.verifier)
    return PlanRuns(ground=ground, bus=services.bus, store=services.store, folder=services.places.plans)


def _warming_on_start(runs: list[Run], services: Services) -> None:
    when = services.settings.warm_on_session_start
    if when == "off":
        return
    from serena_central.sessions.warming import WarmOnStart

    runs.append(WarmOnStart(services.bus, services.warm_up, only_default=when == "default").run)


def _mcp(
    runs: list[Run],
    services: Services,
    caller: ToolCaller,
    token: Token,
    recorder: SessionRecorder,
    resources: Resources | None,
    prompts: Prompts | None,
) -> McpEndpoint:
    sessions = services.sessions
    dialog = services.held_elsewhere.by or LocalTrustDialog(services.trust, services.projects)
    plain = PlainMethods(
        sessions,
        caller,
        services.version,
        resources=resources,
        prompts=prompts,
        questions=TrustQuestions(dialog, services.users),
        secret=token.derived("request state"),
    )

    def adapter() -> "Adapter":
        from serena_central.mcp_server.adapter import Adapter

        return Adapter(sessions=sessions, caller=caller, version=services.version, plain=plain)

    sdk = SdkLane(adapter)
    transports = HandshakeTransports(sdk, sessions=sessions, openings=recorder, direct=plain.direct)
    endpoint = McpEndpoint(sdk, transports, plain.subscriptions, plain.direct)
    runs += [recorder.run, sessions.run, endpoint.run, partial(plain.news.run, services.bus)]
    runs.append(partial(plain.upstream_news.run, services.bus))
    return endpoint


def _faces(
    runs: list[Run],
    services: Services,
    caller: ToolCaller,
    endpoint: McpEndpoint,
    token: Token,
    recorder: SessionRecorder,
    stop: Callable[[], None],
    live_settings: LiveSettings,
    cluster: ClusterView | None,
    collector: Collector,
) -> Application:
    """What clients and browsers reach: /mcp, /api, /metrics and the dashboard, behind the access check."""
    settings, projects, repos, sessions = services.settings, services.projects, services.super_repos, services.sessions
    tally = Tally()
    recall = Recall(services.store, tally)
    runs.append(recall.run)
    runs.append(MemoryRecord(services.pool, services.store.writer).run)
    browsers = Browsers(services.places.browsers_file, token.credential)
    parts = WebServices(
        **_fields_of(services),
        caller=caller,
        tally=tally,
        recall=recall,
        browsers=browsers,
        live_settings=live_settings,
        cluster=cluster,
    )
    dashboard = Dashboard(parts)
    accounts = Accounts(services.users, services.store, sessions, services.bus)
    accounts.on_refused.append(dashboard.sign_out)
    accounts.on_refused.append(lambda user: endpoint.close_streams(user.credential))
    runs.append(accounts.run)
    if services.store.shared:
        fronts = OtherFronts(
            services.store,
            sessions,
            accounts,
            recorder,
            services.bus,
            front=settings.front_name,
            reload_settings=live_settings.reload,
        )
        runs.append(fronts.run)
    for tap in (tally.take, log_event):
        services.bus.tap(tap)
    presence = Presence(sessions, services.version, calls_once=called_once(services.catalogue))
    connections = Connections(descriptors=limit(), clock=time.monotonic)
    descriptors = Descriptors(services.bus)
    prover = Prover(token, proven_names(settings))
    failures: list[BaseException] = []

    def failed(cause: BaseException) -> None:
        failures.append(cause)
        stop()

    app = Starlette(
        routes=routes(
            Api(parts, prover, connections, descriptors, stop),
            Metrics(parts),
            presence,
            hooks=Hooks(projects, repos, sessions),
            gates=Gates(parts, parts.caller.transcript),
            upstreams=Upstreams(parts),
            tasks=Tasks(parts),
            plans=Plans(parts),
            transcripts=Transcripts(parts),
            warming=Warming(services.warm_up),
            calls=Calls(parts),
            accounts=AccountRoutes(accounts),
            cluster=ClusterRoutes(parts),
            dashboard=dashboard,
        ),
        middleware=[
            Middleware(
                AuthGate,
                token=token,
                hosts=own_names(settings),
                origins=own_origins(settings),
                open_paths=OPEN_PATHS,
                door=dashboard.door(),
                users=services.users,
            ),
            *([Middleware(TakeOver, recorder=recorder)] if services.store.shared else []),
            Middleware(Dispatch, mcp=endpoint),
        ],
        exception_handlers={HTTPException: no_such_route},
        lifespan=lambda _app: running_all(failed, runs),
    )
    return Application(
        **_fields_of(parts),
        token=token,
        endpoint=endpoint,
        presence=presence,
        dashboard=dashboard,
        connections=connections,
        descriptors=descriptors,
        collector=collector,
        failures=failures,
        app=app,
    )


def _fields_of(services: Services) -> dict[str, Any]:
    """The fields of a struct, as arguments for a struct that extends it."""
    return {field.name: getattr(services, field.name) for field in fields(services)}


def _tell(repo: SuperRepo, projects: ProjectRegistry, bus: EventBus) -> None:
    """Registers the modules of a super-repo whose configuration was read, and publishes its problems."""
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
