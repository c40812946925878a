"""Who shares an upstream's process: everybody, the sessions of one project, or nobody.

One process for all sessions is the point of the hub, but some servers keep state that belongs to whoever made it: an
open page, variables, a graph of notes. The table names those that are known; an entry's `sharing` and the setting
`hub.sharing` say otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal

Sharing = Literal["shared", "project", "session"]

STATEFUL: tuple[tuple[str, Sharing], ...] = (
    (r"playwright|puppeteer|browser|chrome|selenium|stagehand", "session"),
    (r"\brepl\b|jupyter|ipython|python-?interpreter|code-?(?:runner|interpreter|sandbox)", "session"),
    (r"terminal|\bshell\b|tmux|desktop-?commander|\bssh\b|\bpty\b", "session"),
    (r"sequential-?thinking|task-?master|todo|scratchpad", "session"),
    (r"server-memory|\bmemory\b|knowledge-?graph|memory-?bank|basic-memory", "project"),
    (r"server-filesystem|server-git\b|mcp-server-git|mcp-git|language-server|\blsp\b|ast-grep", "project"),
)
"""Patterns of a package's or program's name → how its process is shared. The last line is of servers that are about the
folder they are started in."""

_TABLE: tuple[tuple[re.Pattern[str], Sharing], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), sharing) for pattern, sharing in STATEFUL
)

_ASKED: Mapping[object, Sharing] = {"shared": "shared", "project": "project", "session": "session"}

_LAUNCHERS = frozenset({"npx", "bunx", "uvx", "uv", "pipx", "node", "deno", "bun", "python", "python3", "docker"})
"""Programs that start what their arguments name."""


def sharing_of(name: str, command: Sequence[str], asked: object, settings: Mapping[str, Sharing]) -> Sharing:
    """How an upstream is shared: as the settings say for its name, as its entry asks, else as the table knows."""
    if name in settings:
        return settings[name]
    known = _ASKED.get(asked)
    if known is not None:
        return known
    for pattern, sharing in _TABLE:
        if any(pattern.search(part) for part in _names(command)):
            return sharing
    return "shared"


def _names(command: Sequence[str]) -> list[str]:
    """What in a command line may be the name of the server: its program, or what a launcher is given."""
    if not command:
        return []
    program = PurePath(command[0]).name
    if program.partition(".")[0].lower() not in _LAUNCHERS:
        return [program]
    return [part for part in command[1:] if not part.startswith("-") and not PurePath(part).is_absolute()]
