"""Layers: values with their origins, and how they combine into one whole.

Knows nothing of files: `reading` makes layers, `load` puts them in order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from serena_central.config.model import Setting, build, settings_of, split_key
from serena_central.config.settings import SharedSettings
from serena_central.core.errors import ConfigError

Settings = TypeVar("Settings", bound=SharedSettings)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set. `name` is a file's path, a variable or a flag; `line` is 1-based, for files only."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        match self.kind:
            case "default":
                return "default"
            case "file":
                return f"{self.name}:{self.line}" if self.line else self.name
            case "environment" | "flag":
                return f"{self.kind} {self.name}"


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a layer that has no effect. Only `wrong` is an error of its author.

    `unknown`: no such key. `ignored`: a key that means something elsewhere. `wrong`: a value that is not allowed.
    `untrusted`: set by a project that is not trusted with it.
    """

    kind: Literal["unknown", "ignored", "wrong", "untrusted"]
    key: str
    text: str
    origin: Origin

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ConfigError:
        if self.origin.kind == "file":
            return ConfigError(self.key, self.text, file=self.origin.name, line=self.origin.line)
        return ConfigError(self.key, f"{self.text} ({self.origin})")


@dataclass(frozen=True, slots=True)
class Given:
    value: Any
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """Checked values by key; the entries of a free mapping have keys of their own: `language_servers.python`."""

    values: dict[str, Given] = field(default_factory=dict[str, Given])
    of_project: bool = False


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Settings]):
    """Settings, where each value came from (key → origins, the strongest last), and what had no effect."""

    value: Settings
    origins: dict[str, tuple[Origin, ...]]
    problems: list[Problem]
    trusted: bool = False
    """The user trusts the project that they are the settings of."""
    own_file: Path | None = None
    """The user's file, into which changes of the server's settings are written."""
    again: Callable[[], Self] | None = None
    """Reads the server's settings again, as they were read before. Raises: ConfigError."""


def combine(model: type[Settings], layers: Iterable[Layer], problems: list[Problem]) -> Loaded[Settings]:
    """Later layers are stronger."""
    combination = _Combination(settings_of(model))
    for layer in layers:
        for key, given in layer.values.items():
            combination.take(key, given, of_project=layer.of_project)
    return Loaded(build(model, combination.values), combination.origins, problems)


class _Combination:
    """Values and origins while layers are put on top of each other."""

    def __init__(self, settings: dict[str, Setting]) -> None:
        self._settings = settings
        self._tightened: set[str] = set()
        self.values: dict[str, Any] = {key: setting.default for key, setting in settings.items()}
        self.origins: dict[str, tuple[Origin, ...]] = dict.fromkeys(settings, (DEFAULT,))

    def take(self, key: str, given: Given, *, of_project: bool) -> None:
        name, entry = split_key(key, self._settings)
        merge = self._settings[name].merge
        if merge == "entries":
            self.values[name] = self.values[name] | {entry: given.value}
            self.origins[key] = given.origins
            self.origins.pop(name, None)  # its entries speak for themselves
        elif merge == "add" and self.origins[name] != (DEFAULT,):
            self.values[name] = list(dict.fromkeys([*self.values[name], *given.value]))
            self.origins[name] = (*self.origins[name], *given.origins)
        elif not (of_project and name in self._tightened):
            self.values[name] = given.value
            self.origins[name] = given.origins
            if merge == "tighten" and not of_project:
                (self._tightened.add if given.value else self._tightened.discard)(name)
