"""Limits a repository's own settings until a person trusts it, and lists the parts to approve.

A cloned repository brings its own project.yml. Of an entry of `language_servers` it may set which server of the
catalogue answers, and how that analyses; everything else has no effect, and neither has a name in there under which
servers take programs, arguments, variables or plugins. Who is trusted is decided in
`projects/trust/trust_decisions.py`; here is the half of it that stands in the user's own settings.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

import yaml

from serena_central.config.layers import Given, Layer, Problem
from serena_central.core.paths import expanded

_ALLOWED = frozenset({"server", "settings", "initialization_options"})
"""Keys of an entry that an untrusted project may set; all others say what runs, or how the server is taken."""

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

MAX_WIDTH = 1_000_000
"""Of a line in what a person is shown: long texts are not folded, so that differences are of whole values."""

WHY = (
    "can execute code of the repository and is ignored, because this repository is not trusted. "
    "Review and trust it with `serena-central trust DIR`, or add its folder to trusted_roots in "
    "~/.serena/serena_config.yml"
)

Trusts = Callable[[Path, Mapping[str, str]], bool]
"""Whether a person trusts a root with exactly these parts: file → its text by `executable_part`."""


def named_in_settings(root: Path, trusted_roots: Iterable[str]) -> bool:
    """Whether one of the user's `trusted_roots` covers a root. Looks at the disk, for links.

    A folder covers all that lies in it. In a pattern `*` stands for any characters of one name and `**` for any number
    of folders; it covers the folders that it fits, and what belongs to them: not repositories inside of them.
    """
    real = root.resolve()
    return any(_covers(trusted, real) for trusted in trusted_roots)


def _covers(trusted: str, root: Path) -> bool:
    parts = expanded(trusted).parts
    if trusted.startswith("~") and parts[0] != "/":  # the home folder of a user that there is not
        return False
    fixed = next((place for place, part in enumerate(parts) if "*" in part), len(parts))
    base, pattern = Path(*parts[:fixed]).resolve(), parts[fixed:]
    if not root.is_relative_to(base):
        return False
    if not pattern:
        return True
    for folder in (root, *root.parents):
        if _fits(folder.relative_to(base).parts, pattern):
            return True
        if folder == base or (folder / ".git").exists():
            return False
    return False


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the whole path fits. Takes no more steps than there are pairs of a name and a part."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached, default=len(names) + 1), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], _literal(part))}
    return len(names) in reached


def _literal(part: str) -> str:
    """For fnmatch, where `*` alone is special to us."""
    return part.replace("[", "[[]").replace("?", "[?]")


class _Representer(yaml.SafeDumper):
    """Writes everything out: what is approved is read by people."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def executable_part(layer: Layer) -> str:
    """The canonical text of what in a file's layer may decide what is run; empty where there is nothing.

    Two files of the same meaning have the same text; what is not ASCII is escaped, so that nothing in it can hide.
    """
    entries = {key.removeprefix(_ENTRIES): one.value for key, one in layer.values.items() if key.startswith(_ENTRIES)}
    if not entries:
        return ""
    return yaml.dump({"language_servers": entries}, Dumper=_Representer, default_flow_style=False, width=MAX_WIDTH)


def restrict(layer: Layer, problems: list[Problem]) -> Layer:
    """The layer of an untrusted project's file without what it may not say; that is among the problems instead."""
    for key, given in list(layer.values.items()):
        if key.startswith(_ENTRIES) and isinstance(given.value, dict):
            refused: list[str] = []
            entry = _without_programs(cast("dict[Any, Any]", given.value), refused)
            if refused:
                layer.values[key] = Given(entry, given.origins)
                problems += [Problem("untrusted", f"{key}.{name}", WHY, given.origins[-1]) for name in refused]
    return layer


def _without_programs(entry: Mapping[Any, Any], refused: list[str]) -> dict[Any, Any]:
    allowed: dict[Any, Any] = {}
    for name, value in entry.items():
        if name not in _ALLOWED:
            refused.append(str(name))
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
