"""What both lanes share, and what is there before the SDK is: the methods of tools, the direct lane, and notices."""

from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.resource_news import ResourceNews
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.tool_methods import ToolMethods
from serena_central.mcp_server.upstream_news import UpstreamNews
from serena_central.sessions.manager import SessionManager
from serena_central.tools.call import ToolCaller


class PlainMethods:
    """Belongs to the event loop's thread."""

    def __init__(self, sessions: SessionManager, caller: ToolCaller, version: str) -> None:
        self.subscriptions = Subscriptions()
        self.news = ResourceNews(sessions, self.subscriptions)
        self.upstream_news = UpstreamNews(sessions, self.subscriptions)
        self.tools = ToolMethods(sessions, caller, self.subscriptions, self.upstream_news)
        self.direct = DirectLane(self.tools, version)
