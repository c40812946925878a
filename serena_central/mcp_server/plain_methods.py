"""What both lanes share, and what is there before the SDK is: the methods of tools, lists, the direct lane, notices."""

from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.listings import Listings
from serena_central.mcp_server.offered import Prompts, Resources
from serena_central.mcp_server.resource_news import ResourceNews
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.tool_methods import ToolMethods
from serena_central.mcp_server.upstream_news import UpstreamNews
from serena_central.sessions.manager import SessionManager
from serena_central.tools.call import ToolCaller


class PlainMethods:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        sessions: SessionManager,
        caller: ToolCaller,
        version: str,
        *,
        resources: Resources | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        """`resources` and `prompts` stand in the place of our own."""
        self.subscriptions = Subscriptions(caller)
        self.news = ResourceNews(sessions, self.subscriptions)
        self.upstream_news = UpstreamNews(sessions, self.subscriptions)
        self.tools = ToolMethods(sessions, caller, self.subscriptions, self.upstream_news)
        self.listings = Listings(caller, self.news, resources, prompts)
        self.direct = DirectLane(self.tools, self.listings, self.subscriptions, sessions, version)
