"""All services of the server as one struct: what tools, pages, the API and MCP work with.

`web/web_services.py` extends it with what the web and MCP packages need; `app/` builds it.
"""

from dataclasses import dataclass, field

from serena_central.analysis.analysis_runs import AnalysisRuns
from serena_central.analysis.collector import Collections
from serena_central.analysis.validation import Validation
from serena_central.config.layers import Loaded
from serena_central.config.settings import ServerSettings
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.lsp.installers.auto import AutoInstaller
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.claude_settings import ClaudeSettings
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.superrepo.lookup import SuperRepos
from serena_central.projects.trust.trust_decisions import Trust
from serena_central.projects.warming.warm_up_jobs import WarmUp
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.views import SymbolViews
from serena_central.store.store import Store
from serena_central.tools.baselines import Baselines
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.gating import Gating
from serena_central.tools.kept_answers import KeptAnswers
from serena_central.tools.offer import Offer
from serena_central.tools.passed_on import KeptResults
from serena_central.tools.upstream_offer import UpstreamOffer


@dataclass(frozen=True, kw_only=True)
class Services:
    """`started_at` is Unix time in seconds."""

    version: str
    started_at: float
    loaded: Loaded[ServerSettings]
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
    installer: AutoInstaller
    root_settings: RootSettings
    baselines: Baselines = field(default_factory=Baselines)
    answers: KeptAnswers = field(default_factory=KeptAnswers)
    kept_results: KeptResults = field(default_factory=KeptResults)

    @property
    def settings(self) -> ServerSettings:
        return self.loaded.value
