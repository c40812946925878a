"""Splits a shell command line into the commands that rules are matched against.

A line is taken apart by the parser of `hook`; one that decides at run time what it runs (substitutions, loops,
here-documents) is cut at everything that can begin a command, which finds rather too much than too little.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from serena_central.hook.shell import UNKNOWN, Unclear, pipelines

_WRAPPERS = frozenset(
    (
        *("builtin", "chronic", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf"),
        *(
            "sudo",
            "time",
            "timeout",
            "watch",
            "xargs",
            "busybox",
            "chroot",
            "chrt",
            "eatmydata",
            "fakeroot",
            "firejail",
        ),
        *(
            "flock",
            "ltrace",
            "parallel",
            "proxychains",
            "setarch",
            "ssh",
            "strace",
            "systemd-run",
            "taskset",
            "unbuffer",
        ),
        *("unshare", "valgrind"),
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
    "flock": "wE",
    "ssh": "bcDEeFIiJLlmOopQRSWw",
    "strace": "aeopsuEOPSXI",
}
"""Options whose value is the next word."""

_TAKE_WORD = frozenset(("timeout", "flock", "chroot", "taskset", "chrt", "ssh"))
"""Programs that take a word of their own before the command."""

_ADD_WORDS = frozenset(("parallel", "xargs"))
"""Those that add words which the line does not tell."""

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_RUN_TEXTS = frozenset((*_SHELLS, "flock", "runuser", "script", "sg", "su"))
"""Programs that run the text behind their option -c."""

_KEYWORDS = frozenset(
    (
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "in",
        "!",
        "[[",
        "{",
        "coproc",
    )
)
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_BREAKS = re.compile(r"<<<|\$\(|`|<\(|>\(|\$\{|&&|\|\||\|&|[;|&\n(){}]")
_GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"))

_SUBSTITUTION = re.compile(r"\$\([^()`]*\)|`[^`]*`|\$\{[^{}]*\}|\{\}")
_ALTERNATIVES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_ESCAPED_TEXT = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.S)
"""`$'…'`, in which `\\x70` is a letter."""

MOST_NESTED = 20
"""Substitutions in each other, and programs that run each other; deeper nesting hides something."""

DEEPEST = 4
"""Shells within shells."""

MOST = 2000
"""Commands of one line; a longer one is a script."""

MOST_CHARS = 1_000_000
"""Of these commands, or eight times the line: each command may be the end of the one before it."""


class Spoken(NamedTuple):
    """One command. `texts`: forms of it that a rule may name: as written, without what only runs it, without options
    before a subcommand. `words` are its words; `unknown`: which program runs can't be told."""

    texts: tuple[str, ...]
    words: tuple[str, ...]
    unknown: bool = False


def commands_of(line: str) -> list[Spoken]:
    """Every command that a line runs, also inside of others, and the line as a whole."""
    line = _ESCAPED_TEXT.sub(_unescaped, line)
    found = [Spoken((line.strip(),), ())]
    most_chars = max(MOST_CHARS, 8 * len(line))
    for command in _commands(line, 0):
        found.append(command)
        most_chars -= sum(map(len, command.texts))
        if len(found) > MOST or most_chars < 0:
            found.append(Spoken((), (), unknown=True))
            break
    return found


def _unescaped(found: re.Match[str]) -> str:
    try:
        return shlex.quote(found[1].encode("latin-1", "backslashreplace").decode("unicode_escape"))
    except UnicodeDecodeError:
        return UNKNOWN


def _commands(line: str, depth: int) -> Iterator[Spoken]:
    if depth > DEEPEST:
        yield Spoken((), (), unknown=True)
        return
    try:
        parsed = pipelines(line)
    except Unclear:
        # What is in substitutions is run, and their outcome may be any word around them.
        for text in dict.fromkeys((line, _outlined(line))):
            for piece in _pieces(text):
                yield from _spoken(piece, depth, fed=False)
        return
    for pipeline in parsed:
        for place, command in enumerate(pipeline):
            yield from _spoken(command.words, depth, fed=place > 0 or command.fed)


def _outlined(line: str) -> str:
    """The line with UNKNOWN in place of its substitutions, the innermost first."""
    for _ in range(MOST_NESTED):
        line, count = _SUBSTITUTION.subn(UNKNOWN, line)
        if not count:
            break
    return line


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
    start = next((at for at, word in enumerate(words) if word not in _KEYWORDS), len(words))
    left = [_ALTERNATIVES.sub(UNKNOWN, word) if "{" in word else word for word in words[start:]]
    if not left:
        return
    inner, added = _without_wrappers(left)
    program = program_of(inner)
    texts = dict.fromkeys((*forms(left), *forms([*inner, UNKNOWN] if added else inner)))
    reads_commands = program in _SHELLS and fed and all(word.startswith("-") for word in inner[1:])
    unknown = UNKNOWN in program or program == "eval" or reads_commands
    yield Spoken(tuple(texts), tuple(words[start:]), unknown)
    yield from _inside(program_of(left), left, depth)
    if inner != left:
        yield from _inside(program, inner, depth)


def _inside(program: str, words: Sequence[str], depth: int) -> Iterator[Spoken]:
    """What a command runs of its own words."""
    for text in _texts_run(program, words):
        yield from _commands(text, depth + 1)
    if program == "find":
        for place, word in enumerate(words):
            if word in _EXEC and depth == DEEPEST:
                yield Spoken((), (), unknown=True)
                return
            if word in _EXEC:
                yield from _spoken(words[place + 1 :], depth + 1, fed=False)


def _texts_run(program: str, words: Sequence[str]) -> Iterator[str]:
    """Command lines among a command's words."""
    if program in _RUN_TEXTS:
        at = next((place for place, word in enumerate(words) if re.fullmatch(r"-\w*c\w*", word)), len(words))
        yield from words[at + 1 : at + 2]
    elif program in ("eval", "ssh"):
        yield " ".join(words[1:])
    elif program == "trap":
        yield from words[1:2]
    elif program == "alias":
        yield from (word.partition("=")[2] for word in words[1:])
    elif program == "env":
        for place, word in enumerate(words):
            if word in ("-S", "--split-string"):
                yield " ".join(words[place + 1 :])
            elif word.startswith(("-S", "--split-string=")):
                yield word.removeprefix("--split-string=").removeprefix("-S")


def _without_wrappers(words: Sequence[str]) -> tuple[list[str], bool]:
    """The command that is run in the end, and whether words are added to it."""
    at, wrappers, added = 0, 0, False
    while at < len(words):
        name, equals, _ = words[at].partition("=")
        program = words[at].rpartition("/")[2]
        if equals and name.isidentifier():
            at += 1
        elif program in _WRAPPERS and at + 1 < len(words):
            wrappers += 1
            added = added or program in _ADD_WORDS
            at = _past_options(program, words, at + 1)
            if wrappers > MOST_NESTED:
                return [UNKNOWN], True
        else:
            return list(words[at:]), added
    # Nothing but assignments, or options: no program is run.
    return [words[0].partition("=")[0]], added


def _past_options(program: str, words: Sequence[str], at: int) -> int:
    takes = _TAKE_VALUES.get(program, "")
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 2 if len(option) == 2 and option[1] in takes else 1
    return at + (1 if program in _TAKE_WORD else 0)


def program_of(words: Sequence[str]) -> str:
    """The name of a command's program, without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def forms(words: Sequence[str]) -> Iterable[str]:
    """The texts of a command that a rule may name."""
    if not words:
        return
    yield " ".join(words)
    named = [program_of(words), *words[1:]]
    yield " ".join(named)
    if named[0] == "git":
        yield " ".join(["git", *_past_git_options(named[1:])])


def _past_git_options(words: Sequence[str]) -> list[str]:
    left = list(words)
    while left and left[0].startswith("-"):
        if left.pop(0) in _GIT_VALUES and left:
            left.pop(0)
    return left
