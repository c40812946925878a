"""The context passed to a tool function: the calling session, all services of the server as one struct, and a place for
notes. `web/web_services.py` extends the services with what the web and MCP packages need; `app/` builds them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from serena_central.analysis.analysis_runs import AnalysisRuns
from serena_central.analysis.collector import Collections
from serena_central.analysis.validation import Validation
from serena_central.config.layers import Loaded
from serena_central.config.settings import ServerSettings
from serena_central.core.clock import Uptime
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.core.quoting import escaped
from serena_central.editing.change import Author
from serena_central.lsp.installers.auto import AutoInstaller
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry, opener_in
from serena_central.projects.root_policy import Opener
from serena_central.projects.root_settings import ClaudeSettings, RootSettings, SuperRepos
from serena_central.projects.trust.trust_decisions import Trust, note
from serena_central.projects.trust.trust_dialog import TrustDialog
from serena_central.projects.visible_projects import VisibleProjects, VisibleSuperRepos
from serena_central.projects.warming.warm_up_jobs import WarmUp
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.sessions.users import Users
from serena_central.store.rows import EditRow
from serena_central.store.store import Store
from serena_central.tools.answer import Answer, Page
from serena_central.tools.baselines import Baselines
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.gating import Gating
from serena_central.tools.kept_answers import KeptAnswers
from serena_central.tools.offer import Offer, UpstreamOffer
from serena_central.tools.passed_on import KeptResults
from serena_central.tools.symbol_answers import SymbolViews
from serena_central.tools.task_offer import TaskOffer


class ProjectHolders(TrustDialog, Protocol):
    """Who holds projects that are not open in this process: a cluster's hosts. What no tool on one project asks them.
    Each raises SerenaCentralError."""

    async def listed(self, session: Session) -> dict[str, dict[str, Any] | None]:
        """Root → entry of `list_projects`, of what is open at the holders that this process knows; None for one that
        does not answer."""
        ...

    async def introduced(self, session: Session, root: str) -> list[str]:
        """What a project says to a session that works on it."""
        ...

    async def reported(self, session: Session, made: Sequence[EditRow]) -> tuple[str, list[str]]:
        """The report after a refactoring, and its notes."""
        ...


class HeldElsewhere:
    """`by`: who holds the projects, where this process does not open them."""

    by: ProjectHolders | None = None


@dataclass(frozen=True, kw_only=True)
class Services:
    """`started_at` is Unix time in seconds."""

    version: str
    started_at: float
    uptime: Uptime
    places: Places
    bus: EventBus
    store: Store
    pool: LanguageServerPool
    projects: ProjectRegistry
    super_repos: SuperRepos
    trust: Trust
    claude: ClaudeSettings
    history: EditHistory
    warm_up: WarmUp
    sessions: SessionManager
    views: SymbolViews
    collections: Collections
    validation: Validation
    analysis_runs: AnalysisRuns
    catalogue: Catalogue
    offer: Offer
    gating: Gating
    upstreams: UpstreamOffer
    tasks: TaskOffer
    installer: AutoInstaller
    root_settings: RootSettings
    users: Users = field(default_factory=Users)
    held_elsewhere: HeldElsewhere = field(default_factory=HeldElsewhere)
    baselines: Baselines = field(default_factory=Baselines)
    answers: KeptAnswers = field(default_factory=KeptAnswers)
    kept_results: KeptResults = field(default_factory=KeptResults)

    def seen_by(self, session: Session) -> Self:
        """As the tools of a session may see them: of a team's user, only the projects in that user's folders."""
        user = self.users.restricted(session.credential) if self.users.present else None
        if user is None or user.opens_everything:
            return self
        projects = VisibleProjects(self.projects, user.may_open)
        repos = VisibleSuperRepos(self.super_repos, user.may_open)
        validation = Validation(projects, repos, self.collections, self.claude.access)
        return replace(self, projects=projects, super_repos=repos, validation=validation)

    @property
    def loaded(self) -> Loaded[ServerSettings]:
        return self.root_settings.loaded

    @property
    def settings(self) -> ServerSettings:
        return self.loaded.value


MOST_SYMBOL_CHARS = 300
"""Of the name path that the history of edits keeps."""


@dataclass
class ToolCall:
    """One call while it runs: who called, what may be used, and the notes that will qualify its answer."""

    id: str
    tool: str
    session: Session
    services: Services
    began: float
    """When the call came, by the event loop's clock."""
    run: Callable[[Session, str, Mapping[str, Any]], Awaitable[Answer]]
    """Runs another tool as a call of its own, for tools that pass a question on."""
    notes: list[str] = field(default_factory=list[str])
    if_empty: list[Callable[[], Awaitable[str]]] = field(default_factory=list[Callable[[], Awaitable[str]]])
    """Callbacks that return a note for an empty answer, or an empty string; not called if a project of the call
    has results."""
    semantic_context: str | None = None
    symbol: str = ""
    """The name path that it was given, if its tool takes one."""
    repeat: str | None = None
    """The idempotency key of this call; None if it has none."""
    person: bool = False
    """Whether a person made it, at a command line or in the dashboard."""
    from_hook: str = ""
    """What a hook that made it says of itself."""
    together: object = None
    """What the tool found out about all projects of a grouped call before each was asked (`Tool.together`)."""
    page: Page = field(default_factory=Page)
    """Which items of a long list it asks for."""

    @property
    def author(self) -> Author:
        """Who is responsible for what this call changes."""
        return Author(
            session=self.session.id,
            owner=self.session.credential if self.services.users.is_restricted(self.session.credential) else "",
            client=self.session.client_name,
            tool=self.tool,
            call=self.id,
            repeat=self.repeat,
            symbol=self.symbol[:MOST_SYMBOL_CHARS],
        )

    @property
    def opener(self) -> Opener:
        """On whose word a folder becomes a project."""
        return opener_in(self.session.working_folder, person=self.person)

    def part(self, label: str) -> "ToolCall":
        """This call as one of several projects sees it, whose group has this label: with notes of its own."""
        return replace(self, notes=[], if_empty=[], page=self.page._replace(group=label))

    def note(self, text: str) -> None:
        """Adds a line to the answer's second block, once; it is one line whatever names it repeats."""
        text = escaped(text)
        if text not in self.notes:
            self.notes.append(text)

    def note_restrictions(self, project: Project) -> None:
        """Says what is held back in a project that nobody trusts, once in a session until something else is."""
        restrictions, told, root = tuple(project.restrictions), self.session.held_back_told, str(project.root)
        if restrictions and told.get(root) != restrictions:
            told[root] = restrictions
            self.note(note(project.name, project.root, restrictions, project.strangers_above))
