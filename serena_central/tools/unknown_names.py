"""Names of modes, contexts and tools in settings and sessions that are not there: a misspelt one restricts nothing."""

import re
from collections.abc import Hashable, Iterable
from difflib import get_close_matches
from typing import NamedTuple

from serena_central.config.profiles import Context, Mode, Profiles
from serena_central.config.settings import ServerSettings, SharedSettings
from serena_central.core.lru import Lru
from serena_central.core.quoting import quoted
from serena_central.sessions.session import Session
from serena_central.tools.catalogue import Catalogue

MOST_KEPT = 200
"""Of sessions with the same settings, context and modes."""

_OF_UPSTREAMS = re.compile(r"__|[*?\[]")
"""In names of upstreams' tools, and in patterns, which are for those: which they have is not known here."""


class UnknownNames:
    """Belongs to the event loop's thread."""

    def __init__(self, settings: ServerSettings, catalogue: Catalogue, profiles: Profiles) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._profiles = profiles
        self._kept: Lru[Hashable, _Found] = Lru(MOST_KEPT)

    def of(self, session: Session, project: SharedSettings, context: Context) -> list[str]:
        """A sentence for each name that is not there. `project`: the settings of the one that the session works on;
        `context`: the one that counts for the session."""
        named = tuple(session.modes or project.default_modes)
        key = (id(project), id(context), session.context, named)
        found = self._kept.get(key)
        if found is None:
            modes = [self._profiles.modes[name] for name in named if name in self._profiles.modes]
            told = [*self._profiles_of(named, session.context, context)]
            told += self._tools_of((self._settings, project, context, *modes))
            found = self._kept[key] = _Found((project, context), list(dict.fromkeys(told)))
        return found.told

    def _profiles_of(self, modes: Iterable[str], named: str | None, context: Context) -> Iterable[str]:
        for name in modes:
            if name not in self._profiles.modes:
                known = ", ".join(sorted(self._profiles.modes))
                yield f"There is no mode {quoted(name)}, so it has no effect. Modes: {known}."
        for name in (named, self._settings.default_context):
            if name is not None and name not in self._profiles.contexts:
                known = ", ".join(sorted(self._profiles.contexts))
                yield f"There is no context {quoted(name)}, so {quoted(context.name)} counts. Contexts: {known}."

    def _tools_of(self, profile: Iterable[SharedSettings | Context | Mode]) -> Iterable[str]:
        tools = self._catalogue.names()
        for part in profile:
            named = {"excluded_tools": part.excluded_tools, "included_optional_tools": part.included_optional_tools}
            if isinstance(part, SharedSettings):
                named["tool_timeouts_s"] = list(part.tool_timeouts_s)
            for setting, names in named.items():
                for name in names:
                    if name not in tools and not _OF_UPSTREAMS.search(name):
                        yield f"There is no tool {quoted(name)}, which {setting} names.{self._instead(name)}"

    def _instead(self, name: str) -> str:
        tool = self._catalogue.get(name)  # of this alias
        meant = [tool.name] if tool is not None else get_close_matches(name, self._catalogue.names(), n=1)
        return f" Is {meant[0]} meant?" if meant else " `serena-central call --help` lists all."


class _Found(NamedTuple):
    made_of: tuple[SharedSettings, Context]
    """Held, so that no other objects can have their ids meanwhile."""
    told: list[str]
