"""The calls that answer a search better, ready to be made. Pure."""

import json
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from serena_central.hook.code import names_in
from serena_central.hook.search import Search

CONTEXT_CHARACTERS = 300


class Place(NamedTuple):
    """Where a search looks, as the server knows it: its project's root, and the path from there ("" for all)."""

    root: str
    relative: str


class Call(NamedTuple):
    """One call of a tool of the server."""

    tool: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.tool}({json.dumps(self.arguments, ensure_ascii=False)})"


def calls_instead(search: Search, place: Place, folder: str) -> list[Call]:
    """What to call instead, the best first. `folder` is where the client works."""
    where: dict[str, Any] = {"relative_path": place.relative} if place.relative else {}
    if search.by_name:
        calls = [Call("find_file", {"file_mask": search.pattern.rpartition("/")[2] or "*", **where})]
    else:
        calls = _by_symbol(search, where) or [_by_text(search, where)]
    more: dict[str, Any] = {} if _is_inside(folder, place.root) else {"project": place.root}
    context = semantic_context(search, folder)
    return [Call(call.tool, {**call.arguments, **more, "semantic_context": context}) for call in calls]


def _by_symbol(search: Search, where: dict[str, Any]) -> list[Call]:
    names = names_in(search.pattern)
    calls: list[Call] = []
    for name in names:
        arguments: dict[str, Any] = {"name_path_pattern": name.path, **where}
        if name.part:
            arguments["substring_matching"] = True
        calls.append(Call("find_symbol", arguments))
    uses = [Call("find_referencing_symbols", {"name_path": name.path}) for name in names if not name.declared]
    return calls + uses[:1]


def _by_text(search: Search, where: dict[str, Any]) -> Call:
    pattern = f"(?i){search.pattern}" if search.no_case else search.pattern
    arguments: dict[str, Any] = {"substring_pattern": pattern, **where}
    if search.globs:
        one = search.globs[0] if len(search.globs) == 1 else "{" + ",".join(search.globs) + "}"
        arguments["paths_include_glob"] = f"**/{one}"
    return Call("search_for_pattern", arguments)


def semantic_context(search: Search, folder: str) -> str:
    """Words about what is looked for and where: they lead a super-repo's router to a module."""
    pattern = re.sub(r"\\[A-Za-z]", " ", search.pattern)
    said = [*re.findall(r"\w+", pattern), *search.globs, *search.paths]
    place = os.path.basename(os.path.join(folder, search.folder).rstrip("/"))
    words = dict.fromkeys(word for word in [*said, search.folder, place] if word and word not in (".", "./"))
    return " ".join(words)[:CONTEXT_CHARACTERS]


def reason_text(why: str, calls: Sequence[Call]) -> str:
    """What the agent reads."""
    first, *others = calls
    lines = [f"This searches text for code ({why}). serena-central knows the code; call its tool instead:", str(first)]
    if others:
        lines += ["or, for more:", *map(str, others)]
    lines.append("If you do need the text search, repeat it unchanged: it will not be stopped again.")
    return "\n".join(lines)


def _is_inside(folder: str, root: str) -> bool:
    folder, root = os.path.realpath(folder), os.path.realpath(root)
    return folder == root or folder.startswith(root.rstrip("/") + "/")
