"""`${VAR}` and `${VAR:-default}` in values that may name secrets: resolved, and never shown.

A resolved value is a string of its template: printed, logged, serialised, put into an error or a traceback, it is
`${TOKEN}`. Only `reveal` returns its value, for starting a program or sending a request.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from serena_central.claude_config.problems import KeyPath

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}")

PLACES: tuple[KeyPath, ...] = (("apiKeyHelper",), ("env", "*"))
"""Where settings are resolved; `*` stands for any key or item. Not in hooks: their commands see the variables."""

SERVER_PLACES: tuple[KeyPath, ...] = (("command",), ("args", "*"), ("env", "*"), ("url",), ("headers", "*"))
"""Where the entry of an MCP server is."""

Undefined = Callable[[KeyPath, str], None]
"""Hears of a path whose value names a variable that is not set, and of its name."""


class Resolved(str):
    """A template whose variables were resolved. As a string it is the template, `${TOKEN}`."""

    __slots__ = ("_reveal",)
    _reveal: Callable[[], str]

    @classmethod
    def of(cls, template: str, value: str) -> Self:
        made = cls(template)
        made._reveal = lambda: value
        return made

    def reveal(self) -> str:
        """What it stands for. Goes into a child's environment, an argument or a header, and nowhere else."""
        return self._reveal()

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def __str__(self) -> str:
        return self[:]


def revealed(value: str) -> str:
    """What a value stands for, resolved or not."""
    return value.reveal() if isinstance(value, Resolved) else value


def substitute(value: Any, places: tuple[KeyPath, ...], environment: Mapping[str, str], undefined: Undefined) -> Any:
    """A copy of `value` whose strings at `places` are resolved. One that names an undefined variable is left out, with
    the entry or list that it belongs to kept; `undefined` is called for it."""
    return _copied(value, (), list(places), environment, undefined)


_LEFT_OUT = object()


def _copied(
    value: Any, path: KeyPath, places: list[KeyPath], environment: Mapping[str, str], undefined: Undefined
) -> Any:
    if isinstance(value, str):
        return _resolved(value, path, environment, undefined) if () in places else value
    if not places or not isinstance(value, dict | list):
        return value
    pairs: list[tuple[Any, Any]] = (
        list(cast("dict[Any, Any]", value).items())
        if isinstance(value, dict)
        else list(enumerate(cast("list[Any]", value)))
    )
    made: list[tuple[Any, Any]] = []
    for key, inside in pairs:
        below = [place[1:] for place in places if place and place[0] in (key, "*")]
        copy = _copied(inside, (*path, key), below, environment, undefined)
        if copy is not _LEFT_OUT:
            made.append((key, copy))
    return dict(made) if isinstance(value, dict) else [inside for _, inside in made]


def _resolved(text: str, path: KeyPath, environment: Mapping[str, str], undefined: Undefined) -> Any:
    missing: list[str] = []

    def value_of(found: re.Match[str]) -> str:
        name, default = found[1], found[3]
        if environment.get(name) or (name in environment and default is None):
            return environment[name]
        if default is None:
            missing.append(name)
        return default or ""

    if "${" not in text:
        return text
    value = _VARIABLE.sub(value_of, text)
    for name in missing:
        undefined(path, name)
    if missing:
        return _LEFT_OUT
    return text if value == text else Resolved.of(text, value)
