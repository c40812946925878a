"""Decides which tools a session may call and which of them are listed, by settings, context and modes.

Settings and modes forbid tools; a context only shortens its client's list. An optional tool that only reads can be
called without being listed, because old prompts know it; one that changes something has to be included first.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from serena_central.config.profiles import Context, Mode, Profiles
from serena_central.config.settings import ServerSettings, SharedSettings
from serena_central.core.lru import Lru
from serena_central.projects.claude_settings import ClaudeSettings
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.superrepo.lookup import SuperRepos
from serena_central.sessions.session import Session
from serena_central.tools.catalogue import Catalogue, Tool
from serena_central.tools.tool_effects import decision_on, rules_root, switched_off

if TYPE_CHECKING:
    from serena_central.tools.task_grants import TaskGrants

AnyTool = TypeVar("AnyTool", bound=Tool)

MOST_KEPT = 1000
"""Roots."""


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
    ) -> None:
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

    def context(self, session: Session) -> Context:
        return self.profiles.context_for(session.context, session.client_name, self.settings.default_context)

    def modes(self, session: Session) -> list[Mode]:
        """The session's own modes, else the default ones; names that nobody defined are left out."""
        names = session.modes or self._project_settings(session).default_modes
        return [mode for name in names if (mode := self.profiles.modes.get(name))]

    def super_repo(self, session: Session) -> SuperRepo | None:
        """The super-repo that a session works in."""
        active = session.active_project
        return self._repos.worked_in(active.root if active else None, session.working_folder)

    def listed(self, session: Session) -> list[Tool]:
        """The tools that a session is shown, in the catalogue's order."""
        included = self._included(session)
        switched_off = self.switched_off(session)
        kinds = ("always", "super-repo") if self.super_repo(session) else ("always",)
        chosen = [tool for tool in self._catalogue if tool.shown in kinds or tool.name in included]
        return [tool for tool in self._shown(session, chosen) if tool.name not in switched_off]

    def allowed(self, session: Session, tools: Iterable[AnyTool]) -> list[AnyTool]:
        """Those of some tools that a session is shown and may call; for those of upstreams, and what belongs to
        them."""
        found = self._claude.of(rules_root(session))
        shown = self._shown(session, tools)
        return [tool for tool in shown if found is None or decision_on(found, tool) is None]

    def for_upstreams(self, session: Session, *, searched: bool) -> list[Tool]:
        """Our tools that a session with upstreams is shown beside theirs, or with `searched` in their place."""
        kinds = ("upstreams", "search") if searched else ("upstreams",)
        return self.allowed(session, [tool for tool in self._catalogue if tool.shown in kinds])

    def _shown(self, session: Session, tools: Iterable[AnyTool]) -> list[AnyTool]:
        project, context, modes = self._project_settings(session), self.context(session), self.modes(session)
        return [
            tool
            for tool in tools
            if not tool.is_among(context.excluded_tools)
            and not (tool.own_session and session.shared)
            and tool.refusal(project) is None
            and self._refusal(tool, session, modes) is None
        ]

    def switched_off(self, session: Session) -> frozenset[str]:
        """Tools that a permission rule of where the session works refuses altogether."""
        root = rules_root(session)
        found = self._claude.of(root)
        if found is None:
            return frozenset()
        known = self._known_off.get(root)
        if known is None or known[0] is not found:
            known = self._known_off[root] = found, switched_off(found, self._catalogue)
        return known[1]

    def refusal(self, tool: Tool, session: Session) -> str | None:
        """The reason why this session may not call a tool on any project; None if it may."""
        return self._refusal(tool, session, self.modes(session))

    def _refusal(self, tool: Tool, session: Session, modes: Sequence[Mode]) -> str | None:
        refused = tool.refusal(self.settings)
        if refused is None and self.task_grants is not None:
            refused = self.task_grants.refusal(tool, session.id)
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
