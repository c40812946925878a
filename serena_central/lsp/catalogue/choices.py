"""The user's settings on language servers, applied to the catalogue.

Takes the `language_servers` of the settings as plain data; where they come from, and whether a project may say that, is
`config`'s business. Nothing is lost silently: what has no effect is among the problems.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.decoding import converted
from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue.registry import Catalogue, completed
from serena_central.lsp.catalogue.spec import ServerSpec
from serena_central.lsp.patterns import check

_FULL = frozenset(ServerSpec.__struct_fields__) - {"name"}
"""Keys of the full form: an entry's own."""


class ChoiceProblem(NamedTuple):
    """Something that has no effect; `key` is a key of `language_servers`, or a language's name."""

    key: str
    text: str


class Choices:
    """Which server answers for a language, with what was changed of its entry. Immutable once it is made."""

    def __init__(self, base: Catalogue, asked: Mapping[str, Any]) -> None:
        """`asked` maps a language or server to a server's name, or to a table of its options."""
        self.problems: list[ChoiceProblem] = []
        self._base = base
        self._specs: dict[str, ServerSpec] = {}
        self._chosen: dict[str, str] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        # Servers first: a language may choose one that is changed or added here.
        for key in sorted(asked, key=self._is_language):
            try:
                self._take(key, asked[key])
            except (ConfigError, msgspec.ValidationError) as error:
                self.problems.append(ChoiceProblem(key, _said(error)))

    def server_for(self, language: str) -> ServerSpec | None:
        """None where the catalogue has none and the settings name none.

        Raises:
            ConfigError
        """
        chosen = self._chosen.get(language)
        default = self._base.default_server(language)
        name = chosen or (default.name if default else None)
        return self.spec(name) if name else None

    def named_by(self, key: str) -> str:
        """The name of the server that an entry of the settings is about.

        Raises:
            ConfigError
        """
        if not self._is_language(key):
            return self._base.successor(key) or key
        spec = self.server_for(self._base.language(key))
        return spec.name if spec else key

    def settings_of(self, server: str) -> dict[str, Any]:
        """What is said to this server, by section, over the entry's own."""
        return self._settings.get(server, {})

    def spec(self, name: str) -> ServerSpec:
        """An entry by its name, with what is said of it.

        Raises:
            ConfigError
        """
        return self._specs.get(name) or self._base.server(name)

    def _is_language(self, key: str) -> bool:
        try:
            self._base.language(key)
        except ConfigError:
            return False
        return True

    def _take(self, key: str, value: Any) -> None:
        options = converted({"server": value} if isinstance(value, str) else value, dict[str, Any])
        if "ls_path" in options:
            options.setdefault("command", options.pop("ls_path"))  # as Serena's users have it
        if self._is_language(key):
            self._take_language(key, self._base.language(key), options)
        else:
            self._take_server(key, options)

    def _take_language(self, key: str, language: str, options: dict[str, Any]) -> None:
        base = self._base_of(key, language, options)
        if base is None:
            raise ConfigError(key, "has no server in the catalogue; set `server` or `command`")
        self._chosen[language] = base.name
        self._change(key, base, options)

    def _base_of(self, key: str, language: str, options: dict[str, Any]) -> ServerSpec | None:
        """The entry that the options are laid over: the one named, else the one whose program is named."""
        if named := options.pop("server", None):
            successor = self._base.successor(str(named))
            if successor:
                self.problems.append(ChoiceProblem(key, f"{named} is no longer supported; {successor} is used instead"))
            return self.spec(str(named))
        known = [self.spec(spec.name) for spec in self._base.servers_of(language)]
        if "command" not in options:
            return self.server_for(language)
        program = Path(next(iter(_words(options["command"])), "")).name
        ours = [spec for spec in known if spec.launch.command and spec.launch.command[0] == f"{{bin:{program}}}"]
        if ours:
            options.setdefault("args", list(ours[0].launch.command[1:]))
            return ours[0]
        return ServerSpec(name=program, title=program, languages=(language,))

    def _take_server(self, key: str, options: dict[str, Any]) -> None:
        successor = self._base.successor(key)
        if successor:
            self.problems.append(ChoiceProblem(key, f"{key} is no longer supported; {successor} is used instead"))
        name = successor or key
        if name in self._base.servers:
            self._change(key, self._base.server(name), options)
        elif "languages" in options and ("command" in options or "launch" in options):
            self._change(key, ServerSpec(name=key, title=key, languages=()), options)
            for language in self._specs[key].languages:
                self._chosen[self._base.language(language)] = key
        else:
            raise ConfigError(
                key, "is not a known language or server; a custom server requires `languages` and `command`"
            )

    def _change(self, key: str, base: ServerSpec, options: dict[str, Any]) -> None:
        """Raises: msgspec.ValidationError, ConfigError."""
        changes = {name: value for name, value in options.items() if name in _FULL}
        launch = converted(changes.get("launch", {}), dict[str, Any])
        if "languages" in changes:
            named = converted(changes["languages"], list[str])
            changes["languages"] = [self._base.language(name) for name in named]
        if "command" in options:
            launch["command"] = _command(options["command"], options.get("args", []))
        elif "args" in options:
            launch["command"] = [*base.launch.command[:1], *_words(options["args"])]
        if "env" in options:
            launch["env"] = {**base.launch.env, **converted(options["env"], dict[str, str])}
        if launch:
            changes["launch"] = launch
        if settings := changes.pop("settings", None):
            self._settings[base.name] = converted(settings, dict[str, Any])
        if changes:
            whole = _over(msgspec.to_builtins(base), changes)
            spec = completed(converted(whole, ServerSpec), self._base.languages)
            check(spec)
            self._specs[base.name] = spec
        if idle := sorted(options.keys() - _FULL - {"command", "args", "env"}):
            self.problems.append(ChoiceProblem(key, f"{', '.join(idle)}: unknown option, ignored"))


def _words(value: Any) -> list[str]:
    """A command or its arguments, from a text or a list.

    Raises:
        msgspec.ValidationError, ConfigError
    """
    words = converted([value] if isinstance(value, str) else value, list[str])
    if any("\0" in word for word in words):
        raise ConfigError("command", "a command can't contain a NUL character")
    return words


def _command(command: Any, args: Any) -> list[str]:
    words = [*_words(command), *_words(args)]
    if not words or not words[0]:
        raise ConfigError("command", "command must name a program")
    if os.sep not in words[0]:
        words[0] = f"{{bin:{words[0]}}}"  # a bare name is looked for as all others are
    return words


def _over(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The table with the changes laid on it, table by table."""
    result = dict(base)
    for key, value in changes.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            result[key] = _over(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            result[key] = value
    return result


def _said(error: ConfigError | msgspec.ValidationError) -> str:
    """What is wrong, with the key below the entry where one is to blame."""
    if not isinstance(error, ConfigError):
        return str(error)
    return f"{error.key} {error.problem}" if "." in error.key else error.problem
