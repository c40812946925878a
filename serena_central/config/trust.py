"""What the files of a repository may not say: which programs run on its user's machine.

A cloned repository brings its own project.yml. It may choose among the servers that the catalogue knows and set how
they analyse; it may name no program, argument, variable or plugin, unless its user trusts its root (`trusted_roots`).
A language server may still run a project's own build (Cargo's build scripts, Gradle): that is the server's nature.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from serena_central.config.layers import Given, Layer, Problem

_OPTIONS = frozenset({"command", "args", "env", "launch", "install", "ls_path"})
"""Keys of an entry that say what is run, or how it is got."""

_INSIDE = ("settings", "initialization_options")
"""Keys of an entry whose tables are handed to the server."""

_PROGRAMS = {
    *("args", "arguments", "binary", "cmd", "command", "commands", "env", "environment", "exec", "executable"),
    *("flags", "home", "interpreter", "java", "jdk", "path", "plugin", "plugins", "program", "runner", "script"),
    *("scripts", "sdk", "shell", "toolchain", "toolexec", "tsdk", "vmargs"),
}
"""Words of names under which servers take programs, their arguments, or code that they load; `paths`, which are looked
through, are none of them."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_ENTRIES = "language_servers."

WHY = (
    "names a program, arguments, variables or code to load, which a project may not: it has no effect. If you trust "
    "this project, add its root to trusted_roots in ~/.serena/serena_config.yml"
)


def is_trusted(root: Path, trusted_roots: Iterable[str]) -> bool:
    """Whether the user has said that code of the project at `root` may run. Looks at the disk, for links."""
    real = root.resolve()
    return any(real.is_relative_to(Path(trusted).expanduser().resolve()) for trusted in trusted_roots)


def restrict(layer: Layer, problems: list[Problem]) -> Layer:
    """The layer of an untrusted project's file without what it may not say; that is among the problems instead."""
    for key, given in list(layer.values.items()):
        if key.startswith(_ENTRIES) and isinstance(given.value, dict):
            refused: list[str] = []
            entry = _without_programs(cast("dict[Any, Any]", given.value), refused)
            if refused:
                layer.values[key] = Given(entry, given.origins)
                problems += [Problem("wrong", f"{key}.{name}", WHY, given.origins[-1]) for name in refused]
    return layer


def _without_programs(entry: Mapping[Any, Any], refused: list[str]) -> dict[Any, Any]:
    allowed: dict[Any, Any] = {}
    for name, value in entry.items():
        if name in _OPTIONS:
            refused.append(name)
        else:
            allowed[name] = _clean(value, str(name), refused) if name in _INSIDE else value
    return allowed


def _clean(value: Any, path: str, refused: list[str]) -> Any:
    """The value without the keys that name programs, at any depth."""
    if isinstance(value, list):
        return [_clean(inside, path, refused) for inside in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    kept: dict[Any, Any] = {}
    for name, inside in cast("dict[Any, Any]", value).items():
        if _names_program(str(name)):
            refused.append(f"{path}.{name}")
        else:
            kept[name] = _clean(inside, f"{path}.{name}", refused)
    return kept


def _names_program(key: str) -> bool:
    """`overrideCommand`, `pythonPath`, `procMacro.server`; not `extraPaths` or `useSyntaxServer`."""
    words = {word.lower() for word in _WORD.findall(key)}
    return not _PROGRAMS.isdisjoint(words) or key.rpartition(".")[2] == "server"
