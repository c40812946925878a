"""Limits a project's choice of servers to what its user trusts.

A project that is not trusted may choose among the catalogue's servers and set those that execute nothing of it. Only
the user may configure servers that execute code, and choose what is installed.
"""

from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import replace

from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue.choices import ChoiceProblem, Choices
from serena_central.lsp.catalogue.registry import Catalogue
from serena_central.lsp.catalogue.spec import ServerSpec

NOT_COUNTED = (
    "is ignored: the server may execute code of the project, which is not trusted. To trust it: "
    "serena-central trust DIR"
)


class Permitted:
    """Which server answers for a language in one project. Immutable once it is made."""

    def __init__(self, base: Catalogue, chosen: Mapping[str, Any], *, users: Mapping[str, Any], trusted: bool) -> None:
        """`chosen` is what all settings say, as for `Choices`; `users` what they say without the project's own."""
        self._chosen = Choices(base, chosen)
        self._users = self._chosen if trusted else Choices(base, users)
        self._trusted = trusted
        self.problems = [*self._chosen.problems]
        if not trusted:
            own = [key for key, value in chosen.items() if value != users.get(key)]
            self.problems += [ChoiceProblem(key, NOT_COUNTED) for key in own if self._does_not_count(key, chosen[key])]

    def server_for(self, language: str) -> ServerSpec | None:
        """None where the catalogue has none and the settings name none.

        Raises:
            ConfigError
        """
        spec = self._chosen.server_for(language)
        if spec is None or self._trusted:
            return spec
        own = self._own(spec.name)
        if own is None:
            return replace(spec, executes=None, untrusted=None)
        if own.executes != ():
            return own
        return replace(spec, launch=own.launch, install=own.install, executes=own.executes, untrusted=own.untrusted)

    def settings_of(self, server: str) -> dict[str, Any]:
        """What is said to this server, by section, over the entry's own."""
        return (self._users if self._is_restricted(server) else self._chosen).settings_of(server)

    def named_by(self, key: str) -> str:
        """The name of the server that a language, or an entry of the settings, means.

        Raises:
            ConfigError
        """
        return self._chosen.named_by(key)

    def spec(self, server: str) -> ServerSpec:
        """An entry by its name.

        Raises:
            ConfigError
        """
        return self._chosen.spec(server)

    def is_users(self, spec: ServerSpec) -> bool:
        """Whether its user's settings, or the catalogue's defaults, bring this server to the project."""
        found = (self._users.server_for(language) for language in spec.languages)
        return any(one is not None and one.name == spec.name for one in found)

    def _own(self, server: str) -> ServerSpec | None:
        """A server as its user's settings and the catalogue have it; None for one that a project made up."""
        try:
            return self._users.spec(server)
        except ConfigError:
            return None

    def _is_restricted(self, server: str) -> bool:
        """Whether a server has to be kept from executing what the project brings."""
        own = None if self._trusted else self._own(server)
        return not self._trusted and (own is None or own.executes != ())

    def _does_not_count(self, key: str, value: Any) -> bool:
        """Whether a project's own entry sets anything of a server that is restricted."""
        if any(problem.key == key for problem in self._chosen.problems):
            return False
        sets = isinstance(value, dict) and bool(set(cast("dict[str, Any]", value)) - {"server"})
        return sets and self._is_restricted(self._chosen.named_by(key))
