"""Before a client's tool runs: whether it is a search for code that the server answers better, and the call instead.

The questions go from cheap to dear: the text of the call, the server, the memory of earlier runs, of which the last two
are imported when they are asked. Each "no" lets the tool run; so does everything that can't be told.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from serena_central.hook.code import SOURCE_FOLDERS, reason_of
from serena_central.hook.instead import calls_instead, reason_text
from serena_central.hook.payload import ToolUse, searches_of
from serena_central.hook.search import Search
from serena_central.island.home import Home

MODES = ("deny", "nudge", "ask", "off")
EVERY = 3
"""A nudge stops every third search of a session."""


class Verdict(NamedTuple):
    """ "deny" or "ask", and what the agent is told."""

    verdict: str
    reason: str


def decide(
    use: ToolUse, home: Home, *, mode: str, now: float, folders: Sequence[str] = SOURCE_FOLDERS
) -> Verdict | None:
    """None lets the tool run. `now` in Unix seconds."""
    if mode == "off":
        return None
    searches = [(search, why) for search in searches_of(use) if (why := reason_of(search, folders))]
    if not searches:
        return None
    from serena_central.hook.question import place_of

    search, why = searches[0]
    place = place_of(home, place_meant(search, use.folder), search.globs or _names(search))
    if place is None or not _is_due(use, home, mode, now):
        return None
    calls = calls_instead(search, place, use.folder)
    return Verdict("ask" if mode == "ask" else "deny", reason_text(why, calls))


def place_meant(search: Search, folder: str) -> str:
    """The absolute path of what a search goes through: of several paths, the folder that holds them."""
    base = os.path.join(folder or os.getcwd(), os.path.expanduser(search.folder))
    paths = [os.path.normpath(os.path.join(base, os.path.expanduser(path))) for path in search.paths or (".",)]
    return os.path.commonpath(paths)


def _names(search: Search) -> tuple[str, ...]:
    return (search.pattern.rpartition("/")[2],) if search.by_name else ()


def _is_due(use: ToolUse, home: Home, mode: str, now: float) -> bool:
    """Whether this one is to be stopped. Without a memory none is: it might be the second time."""
    from serena_central.hook.memory import Memory, Unavailable, digest

    memory = Memory(home)
    try:
        if mode == "nudge" and memory.count(digest(use.session), now) % EVERY:
            return False
        call = digest(use.session, use.folder, use.tool, repr(sorted(_plain(use.arguments).items())))
        return not memory.was_stopped(call, now)
    except Unavailable:
        return False


def _plain(arguments: dict[str, object]) -> dict[str, object]:
    """Without what an agent words anew each time it asks for the same."""
    return {key: value for key, value in arguments.items() if key not in ("description", "explanation", "timeout")}
