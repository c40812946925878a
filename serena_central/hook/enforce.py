"""Handles a client's hook before a tool runs: recognizes searches for code, and suggests the tool call instead.

The checks go from cheap to expensive: the text of the call, the server, the memory of earlier runs; the last two are
imported on use. A "no" or an unknown at any check lets the tool run.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from serena_central.hook.code import SOURCE_FOLDERS, reason_of
from serena_central.hook.payload import ToolUse, searches_of
from serena_central.hook.search import Search
from serena_central.hook.suggestions import Suggestion, calls_instead, masks, reason_text
from serena_central.standalone.home import Home

MODES = ("deny", "nudge", "ask", "off")
MOST_SEARCHES = 3
"""In one line: it is stopped if calls can stand in for all of them."""

EVERY = 3
"""A nudge stops every third search of a session."""


class Verdict(NamedTuple):
    """The decision, "deny" or "ask", and the message to the agent."""

    verdict: str
    reason: str


def decide(
    use: ToolUse, home: Home, *, mode: str, now: float, folders: Sequence[str] = SOURCE_FOLDERS
) -> Verdict | None:
    """None lets the tool run. `now` in Unix seconds."""
    if mode == "off":
        return None
    searches = searches_of(use)
    reasons = [reason_of(search, folders) for search in searches]
    if not 0 < len(searches) <= MOST_SEARCHES or not all(reasons):
        return None
    from serena_central.hook.server_query import place_of

    instead = Suggestion([], [])
    for search in searches:
        place = place_of(home, places_meant(search, use.folder), masks(search))
        if place is None:
            return None
        for part, more in zip(instead, calls_instead(search, place, use.folder), strict=True):
            part += [call for call in more if call not in part]
    if not _is_due(use, home, mode, now):
        return None
    return Verdict("ask" if mode == "ask" else "deny", reason_text(str(reasons[0]), instead))


def places_meant(search: Search, folder: str) -> list[str]:
    """The absolute paths that a search goes through."""
    base = os.path.join(folder or os.getcwd(), os.path.expanduser(search.folder))
    return [os.path.normpath(os.path.join(base, os.path.expanduser(path))) for path in search.paths or (".",)]


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
    """The arguments without those that an agent words differently each time it repeats a call."""
    return {key: value for key, value in arguments.items() if key not in ("description", "explanation", "timeout")}
