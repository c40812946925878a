"""Builds the tool calls that answer a search better. Pure."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from serena_central.hook.code import NOISE, Name, symbols_in
from serena_central.hook.search import Search

CONTEXT_CHARACTERS = 300


class SearchPlace(NamedTuple):
    """Where a search looks, as the server knows it: the root of its project or super-repo, and the path from there
    ("" for all). `unread` are globs of files there whose symbols nobody reads."""

    root: str
    relative: str
    unread: tuple[str, ...] = ()


class Call(NamedTuple):
    """One call of a tool of the server."""

    tool: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.tool}({json.dumps(self.arguments, ensure_ascii=False)})"


class Suggestion(NamedTuple):
    """`calls` together find every definition that the search would have found; `more` may be of use, too."""

    calls: list[Call]
    more: list[Call]


def calls_instead(search: Search, place: SearchPlace, folder: str) -> Suggestion:
    """What to call instead of a search. `folder` is where the client works.

    Each call names its project: words and the session's own project may lead elsewhere.
    """
    where: dict[str, Any] = {"relative_path": place.relative} if place.relative else {}
    names = [] if search.by_name or search.no_case else symbols_in(search.pattern)
    more: list[Call] = []
    if search.by_name:
        calls = [Call("find_file", {"file_mask": _one_of(masks(search)), **where})]
    elif names:
        calls = [_definition(name, where) for name in names]
        if place.unread:
            calls.append(_by_text(search, where, place.unread))
        uses = [Call("find_referencing_symbols", {"name_path": name.path}) for name in names if not name.declared]
        more = [*uses[:1], _by_text(search, where, search.globs)] if uses else []
    else:
        calls = [_by_text(search, where, search.globs)]
    all_calls = {"project": place.root, "semantic_context": semantic_context(search, folder)}
    return Suggestion(*([Call(call.tool, call.arguments | all_calls) for call in part] for part in (calls, more)))


def masks(search: Search) -> Sequence[str]:
    """Globs of the names of files that a search is limited to; none for all files."""
    named = (search.pattern.rpartition("/")[2] or "*",) if search.by_name else ()
    found = search.globs or named
    return [in_any_case(one) for one in found] if search.by_name and search.no_case else found


def in_any_case(glob: str) -> str:
    """A glob that fits names in capitals and without."""

    def both(found: re.Match[str]) -> str:
        return f"[{found[0].lower()}{found[0].upper()}]" if len(found[0]) == 1 else found[0]

    return re.sub(r"\[[^]]*\]|[A-Za-z]", both, glob)


def _definition(name: Name, where: Mapping[str, Any]) -> Call:
    arguments: dict[str, Any] = {"name_path_pattern": name.path, **where}
    if name.part:
        arguments["substring_matching"] = True
    return Call("find_symbol", arguments)


def _by_text(search: Search, where: Mapping[str, Any], globs: Sequence[str]) -> Call:
    pattern = f"(?i){search.pattern}" if search.no_case else search.pattern
    arguments: dict[str, Any] = {"substring_pattern": pattern, **where}
    if globs:
        arguments["paths_include_glob"] = f"**/{_one_of(globs)}"
    return Call("search_for_pattern", arguments)


def _one_of(globs: Sequence[str]) -> str:
    return globs[0] if len(globs) == 1 else "{" + ",".join(globs) + "}"


def semantic_context(search: Search, folder: str) -> str:
    """Words about what is looked for and where: they lead a super-repo's router to a module."""
    said = re.findall(r"\w+", re.sub(r"\\[A-Za-z]", " ", search.pattern))
    names = [word for word in said if len(word) > 1 and not word.isdigit() and word.lower() not in NOISE]
    place = os.path.basename(os.path.join(folder, search.folder).rstrip("/"))
    words = dict.fromkeys([*names, *search.globs, *search.paths, search.folder, place])
    return " ".join(word for word in words if word.strip("./*"))[:CONTEXT_CHARACTERS]


def reason_text(why: str, instead: Suggestion) -> str:
    """What the agent reads."""
    lines = [f"This is a text search for code ({why}). Call this serena-central tool instead:"]
    lines += map(str, instead.calls)
    if instead.more:
        lines += ["or, for more results:", *map(str, instead.more)]
    lines.append(
        "Files that git or the settings ignore are not included. If you need the text search, repeat it unchanged: it "
        "will not be blocked again."
    )
    return "\n".join(lines)
