"""Splits a shell command line into the commands that rules are matched against.

A line is taken apart by the parser of `hook`; one that decides at run time what it runs (substitutions, loops,
here-documents) is cut at everything that can begin a command, which finds rather too much than too little.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from serena_central.hook.shell import UNKNOWN, Unclear, pipelines

_WRAPPERS = frozenset(
    (
        *("builtin", "chronic", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf"),
        *("sudo", "time", "timeout", "watch", "xargs"),
    )
)
"""Programs that run the one that follows."""

_TAKE_VALUES = {
    "sudo": "ughpCDRT",
    "doas": "uC",
    "env": "uCS",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "ks",
    "stdbuf": "",
    "xargs": "aEILnPsd",
    "watch": "n",
    "exec": "a",
    "time": "fo",
}
"""Options whose value is the next word."""

_TAKE_WORD = frozenset(("timeout",))
"""Programs that take a word of their own before the command."""

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "!", "[[", "{")
)
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_BREAKS = re.compile(r"\$\(|`|<\(|>\(|\$\{|&&|\|\||\|&|[;|&\n(){}]")
_GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"))

DEEPEST = 4
"""Shells within shells."""

MOST = 2000
"""Commands of one line; a longer one is a script."""


class Spoken(NamedTuple):
    """One command. `texts`: forms of it that a rule may name: as written, without what only runs it, without options
    before a subcommand. `words` are its words; `unknown`: which program runs can't be told."""

    texts: tuple[str, ...]
    words: tuple[str, ...]
    unknown: bool = False


def commands_of(line: str) -> list[Spoken]:
    """Every command that a line runs, also inside of others, and the line as a whole."""
    found = [Spoken((line.strip(),), ())]
    for command in _commands(line, 0):
        found.append(command)
        if len(found) > MOST:
            found.append(Spoken((), (), unknown=True))
            break
    return found


def _commands(line: str, depth: int) -> Iterator[Spoken]:
    if depth > DEEPEST:
        yield Spoken((), (), unknown=True)
        return
    try:
        parsed = pipelines(line)
    except Unclear:
        for piece in _pieces(line):
            yield from _spoken(piece, depth, fed=False)
        return
    for pipeline in parsed:
        for place, command in enumerate(pipeline):
            yield from _spoken(command.words, depth, fed=place > 0 or command.fed)


def _pieces(line: str) -> Iterator[tuple[str, ...]]:
    """Words of all that may be a command in a line that the parser does not take."""
    for text in _BREAKS.split(line):
        try:
            parsed = pipelines(text)
        except Unclear:
            words = tuple(word.strip("\"'\\") for word in text.split())
            yield tuple(word for word in words if word)
        else:
            for pipeline in parsed:
                for command in pipeline:
                    yield command.words


def _spoken(words: Sequence[str], depth: int, *, fed: bool) -> Iterator[Spoken]:
    """A command, and those that it runs."""
    left = list(words)
    while left and left[0] in _KEYWORDS:
        left.pop(0)
    if not left:
        return
    inner = _without_wrappers(left)
    program = _program(inner)
    texts = dict.fromkeys((*_forms(left), *_forms(inner)))
    unknown = UNKNOWN in program or program == "eval" or (program in _SHELLS and len(inner) == 1 and fed)
    yield Spoken(tuple(texts), tuple(left), unknown)
    yield from _inside(program, inner, depth)


def _inside(program: str, words: Sequence[str], depth: int) -> Iterator[Spoken]:
    if program in _SHELLS:
        at = next((place for place, word in enumerate(words) if re.fullmatch(r"-\w*c\w*", word)), None)
        if at is not None and at + 1 < len(words):
            yield from _commands(words[at + 1], depth + 1)
    elif program == "eval":
        yield from _commands(" ".join(words[1:]), depth + 1)
    elif program == "find":
        for place, word in enumerate(words):
            if word in _EXEC:
                yield from _spoken(words[place + 1 :], depth + 1, fed=False)


def _without_wrappers(words: Sequence[str]) -> list[str]:
    left = list(words)
    while left:
        name, equals, _ = left[0].partition("=")
        program = _program(left)
        if equals and name.isidentifier():
            left.pop(0)
        elif program in _WRAPPERS and len(left) > 1:
            left = _past_options(program, left[1:])
        else:
            break
    return left or list(words)


def _past_options(program: str, words: list[str]) -> list[str]:
    left = list(words)
    takes = _TAKE_VALUES.get(program, "")
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if len(option) == 2 and option[1] in takes and left:
            left.pop(0)
    if program in _TAKE_WORD and left:
        left.pop(0)
    return left


def _program(words: Sequence[str]) -> str:
    """The name of a command's program, without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def _forms(words: Sequence[str]) -> Iterable[str]:
    if not words:
        return
    yield " ".join(words)
    named = [_program(words), *words[1:]]
    yield " ".join(named)
    if named[0] == "git":
        yield " ".join(["git", *_past_git_options(named[1:])])


def _past_git_options(words: Sequence[str]) -> list[str]:
    left = list(words)
    while left and left[0].startswith("-"):
        if left.pop(0) in _GIT_VALUES and left:
            left.pop(0)
    return left
