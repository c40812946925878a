"""The services of the web and MCP packages: those of all tools, the tool caller, and their own."""

from dataclasses import dataclass

from serena_central.access.browsers import Browsers
from serena_central.tools.call import ToolCaller
from serena_central.tools.context import Services
from serena_central.tools.live_settings import LiveSettings
from serena_central.web.cluster_view import ClusterView
from serena_central.web.recall import Recall
from serena_central.web.tally import Tally


@dataclass(frozen=True, kw_only=True)
class WebServices(Services):
    """Of one server."""

    caller: ToolCaller
    tally: Tally
    recall: Recall
    browsers: Browsers
    live_settings: LiveSettings
    cluster: ClusterView | None = None
    """None: this process holds all projects itself."""
