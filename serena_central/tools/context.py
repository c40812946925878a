"""What a tool function is handed: the session that called, the services it may use, and a place for remarks."""

from dataclasses import dataclass, field, replace

from serena_central.config.settings import ServerSettings
from serena_central.core.events import EventBus
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.registry import ProjectRegistry
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.tools.catalogue import CATALOGUE, Tool


@dataclass(frozen=True)
class Services:
    """What tool functions may use besides their project."""

    projects: ProjectRegistry
    sessions: SessionManager
    pool: LanguageServerPool
    settings: ServerSettings
    bus: EventBus

    def tools_for(self, session: Session) -> list[Tool]:
        """The tools that a session is shown, in the catalogue's order."""
        shown: list[Tool] = []
        for tool in CATALOGUE:
            optional = tool.shown != "always" and tool.name not in self.settings.included_optional_tools
            if not optional and tool.refusal(self.settings) is None:
                shown.append(tool)
        return shown


@dataclass
class ToolCall:
    """One call while it runs: who called, what may be used, and the remarks that will qualify its answer."""

    id: str
    session: Session
    services: Services
    began: float
    """When the call came, by the event loop's clock."""
    remarks: list[str] = field(default_factory=list[str])
    semantic_context: str | None = None
    answer_chars: int = 0
    """Length of the answer, once there is one."""

    def part(self) -> "ToolCall":
        """This call as one of several projects sees it: with remarks of its own."""
        return replace(self, remarks=[])

    def remark(self, text: str) -> None:
        """Adds a line to the answer's second block, once."""
        if text not in self.remarks:
            self.remarks.append(text)
