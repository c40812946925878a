"""Finds the searches that a command line makes, if it does nothing else.

A line that also builds, edits, commits or hands what it found to such a program is left alone as a whole: stopping it
would stop more than a search.
"""

import os
from collections.abc import Sequence

from serena_central.hook.programs import search_by
from serena_central.hook.search import Search
from serena_central.hook.shell import UNKNOWN, Command, Pipeline, Unclear, pipelines

_WRAPPERS = frozenset(("command", "env", "time", "nice", "nohup", "builtin", "stdbuf", "timeout", "\\command"))
_SHELLS = frozenset(("sh", "bash", "zsh", "dash"))
_HARMLESS = frozenset(
    ("echo", "pwd", "ls", "true", ":", "printf", "cat", "head", "tail", "which", "wc", "date", "tree")
)
"""What may stand beside a search in a line that still only looks."""

_FILTERS = ("head", "tail", "sort", "uniq", "less", "more", "cat", "cut", "nl", "column", "awk", "sed", "tr", "bat")
_SHOWS = frozenset((*_FILTERS, "grep", "egrep", "fgrep", "rg"))
"""Programs that a search's result may be piped through and still only be displayed."""

DEEPEST = 3
"""Shells within shells."""


def searches_in(line: str, *, depth: int = 0) -> list[Search]:
    """Empty if the line does anything besides searching, or cannot be parsed."""
    try:
        found = pipelines(line)
    except Unclear:
        return []
    searches: list[Search] = []
    folder = ""
    for pipeline in found:
        inner = _inner_line(pipeline)
        words = _program_words(pipeline[0])
        if inner is not None and depth < DEEPEST:
            made = searches_in(inner, depth=depth + 1)
            if not made:
                return []
            searches += [_from(folder, one) for one in made]
        elif words[:1] == ["cd"] and len(pipeline) == 1:
            if len(words) != 2 or UNKNOWN in words[1] or words[1] == "-":
                return []
            folder = os.path.join(folder, words[1])
        else:
            one = _search_of(pipeline)
            if one is not None:
                searches.append(_from(folder, one))
            elif not _only_looks(pipeline):
                return []
    return searches


def _from(folder: str, search: Search) -> Search:
    """A search that is made below a folder."""
    return search._replace(folder=os.path.join(folder, search.folder) if search.folder else folder)


def _search_of(pipeline: Pipeline) -> Search | None:
    """The search that a pipeline begins with, if all that follows only shows what it found."""
    first, *rest = pipeline
    words = _program_words(first)
    found = search_by(words, fed=first.fed) if words else None
    if found is None or any(command.saved for command in pipeline):
        return None
    if found.by_name and rest and (handed := _handed_on(rest[0])):
        globs = () if found.no_case else found.globs or (found.pattern,)
        found = handed._replace(paths=found.paths, globs=globs)
        rest = rest[1:]
    return found if all(_shows(command) for command in rest) else None


def _handed_on(command: Command) -> Search | None:
    """`find … | xargs grep …`."""
    words = _program_words(command)
    if not words or words[0] != "xargs":
        return None
    at = next((place for place, word in enumerate(words) if place and _names_search(word)), None)
    return search_by([*words[at:], "."], fed=False) if at else None


def _names_search(word: str) -> bool:
    return word.rpartition("/")[2] in ("grep", "egrep", "fgrep", "rg", "ugrep", "ag", "ack")


def _shows(command: Command) -> bool:
    words = _program_words(command)
    if not words or words[0] not in _SHOWS:
        return False
    if words[0] == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in words)
    return not (_names_search(words[0]) and any(word.startswith("-") and set("cq") & set(word[1:]) for word in words))


def _only_looks(pipeline: Pipeline) -> bool:
    """Whether nothing is lost when the whole line is not run."""
    words = [_program_words(command) for command in pipeline]
    return all(
        one and not command.saved and (one[0] in _HARMLESS or _shows(command))
        for one, command in zip(words, pipeline, strict=True)
    )


def _inner_line(pipeline: Pipeline) -> str | None:
    """What `bash -c "…"` runs."""
    words = _program_words(pipeline[0])
    if len(pipeline) == 1 and len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return None


def _program_words(command: Command) -> list[str]:
    """The words from the program on: without `NAME=value` and programs that only run another."""
    words = list(command.words)
    while words:
        name, equals, _ = words[0].partition("=")
        if equals and name.isidentifier():
            words = words[1:]
        elif words[0] in _WRAPPERS:
            words = _behind_options(words[1:], takes_number=words[0] == "timeout")
        else:
            break
    return words


def _behind_options(words: Sequence[str], *, takes_number: bool) -> list[str]:
    left = list(words)
    while left and left[0].startswith("-"):
        left.pop(0)
    if takes_number and left and left[0][:1].isdigit():
        left.pop(0)
    return left
