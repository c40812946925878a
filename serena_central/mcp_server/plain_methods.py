"""What both lanes share, and what is there before the SDK is: the methods of tools and contents, the direct lane,
notices."""

from serena_central.mcp_server.content_methods import ContentMethods
from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.offered import Prompts, Resources
from serena_central.mcp_server.request_state import RequestStates
from serena_central.mcp_server.resource_news import ResourceNews
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.tool_methods import ToolMethods
from serena_central.mcp_server.trust_questions import TrustQuestions
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
        questions: TrustQuestions | None = None,
        secret: bytes | None = None,
    ) -> None:
        """`resources` and `prompts` stand in the place of our own. Without `questions` no client's person is asked
        about trust. `secret` signs what clients carry for us from one round of a request to the next."""
        self.states = RequestStates(secret)
        self.subscriptions = Subscriptions(caller)
        self.news = ResourceNews(sessions, self.subscriptions)
        self.upstream_news = UpstreamNews(sessions, self.subscriptions)
        self.tools = ToolMethods(sessions, caller, self.subscriptions, self.upstream_news, questions)
        self.contents = ContentMethods(caller, self.news, resources, prompts)
        self.direct = DirectLane(self.tools, self.contents, self.subscriptions, self.states, sessions, version)
