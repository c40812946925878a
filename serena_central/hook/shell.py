"""Parses shell command lines: which programs run with which words, and how they are piped.

A small part of the shell's grammar, read strictly: whatever decides at run time what is run or said (substitutions,
loops, here-documents) makes a line `Unclear`, and unclear lines are left alone. Knows no program.
"""

from typing import NamedTuple

LONGEST = 20_000
"""Characters. A longer line is a script."""

UNKNOWN = "\0"
"""Stands in a word for what a variable holds."""

_DECIDE = ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select")
_KEYWORDS = frozenset((*_DECIDE, "function", "coproc", "{", "}", "[[", "((", "!"))
_ENDS = frozenset((";", "\n", "&&", "||", "&"))
_PIPES = frozenset(("|", "|&"))
_OPERATORS = ("&&", "||", "|&", ";;", "&>>", "&>", ";", "|", "&", "\n", "(", ")")


class Unclear(Exception):
    """The effect of this line cannot be derived from its text."""


class Command(NamedTuple):
    """One program's words, the first of which names it. `saved`: its output goes to a file."""

    words: tuple[str, ...]
    saved: bool = False
    fed: bool = False
    """Whether a file is its standard input."""


Pipeline = tuple[Command, ...]
"""Commands of which each reads what the one before it says."""


def pipelines(line: str) -> list[Pipeline]:
    """The pipelines of a command line, in order.

    Raises:
        Unclear: the line cannot be parsed statically.
    """
    return [pipeline for pipeline, _ in joined_pipelines(line)]


def joined_pipelines(line: str) -> list[tuple[Pipeline, str]]:
    """The same with the operator behind each; the end of the line is a `;`.

    Raises:
        Unclear
    """
    if len(line) > LONGEST:
        raise Unclear("too long")
    return _Reader(line).read()


class _Reader:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._done: list[tuple[Pipeline, str]] = []
        self._pipeline: list[Command] = []
        self._words: list[str] = []
        self._saved = False
        self._fed = False

    def read(self) -> list[tuple[Pipeline, str]]:
        while (here := self._skip_space()) is not None:
            if here == "#":
                end = self._line.find("\n", self._at)
                self._at = len(self._line) if end < 0 else end
            elif here in "<>":
                self._redirect()
            elif (operator := self._operator()) is not None:
                self._take(operator)
            else:
                self._word()
        self._take(";")
        return self._done

    def _skip_space(self) -> str | None:
        """The next character that is no space; None at the end."""
        while self._at < len(self._line):
            if self._line.startswith("\\\n", self._at):
                self._at += 2
            elif self._line[self._at] in " \t\r":
                self._at += 1
            else:
                return self._line[self._at]
        return None

    def _operator(self) -> str | None:
        found = next((one for one in _OPERATORS if self._line.startswith(one, self._at)), None)
        self._at += len(found or "")
        return found

    def _take(self, operator: str) -> None:
        if operator in ("&>", "&>>"):
            self._target()
            return
        if operator not in _ENDS and operator not in _PIPES:
            raise Unclear(f"{operator} groups commands")
        if operator == "\n" and self._pipeline and not self._words and not self._saved:
            return  # a pipe goes on in the next line
        if self._words:
            self._pipeline.append(Command(tuple(self._words), self._saved, self._fed))
        elif self._saved or operator in _PIPES:
            raise Unclear("a command is missing")
        self._words, self._saved, self._fed = [], False, False
        if operator in _ENDS and self._pipeline:
            self._done.append((tuple(self._pipeline), operator))
            self._pipeline = []

    def _redirect(self) -> None:
        """`>`, `>>`, `<`, `2>`, `>&2`, with a number that stood before them."""
        line = self._line
        if line.startswith(("<(", ">(", "<<"), self._at):
            raise Unclear("a here-document or process substitution")
        before = self._words[-1] if self._words and self._at and line[self._at - 1] in "0123456789" else ""
        descriptor = self._words.pop() if before.isdigit() and len(before) == 1 else ""
        reads = line[self._at] == "<"
        self._at += 2 if line.startswith((">>", ">&", "<&", ">|", "<>"), self._at) else 1
        joined = line[self._at - 1] == "&"
        self._target(to_file=not joined and not reads and descriptor in ("", "1"))
        self._fed = self._fed or reads

    def _target(self, *, to_file: bool = True) -> None:
        """Where a redirection leads: it is no word of the command."""
        if self._skip_space() is None:
            raise Unclear("a redirection has no target")
        before = len(self._words)
        self._word()
        if len(self._words) == before:
            raise Unclear("a redirection has no target")
        self._saved = self._saved or (to_file and self._words[-1] != "/dev/null")
        del self._words[before:]

    def _word(self) -> None:
        start, parts = self._at, list[str]()
        while self._at < len(self._line) and (here := self._line[self._at]) not in " \t\r\n;|&<>()":
            self._at += 1
            if here == "'":
                parts.append(self._single_quoted())
            elif here == '"':
                parts.append(self._double_quoted())
            elif here == "\\":
                parts.append(self._escaped())
            elif here in "$`":
                parts.append(self._variable(here))
            else:
                parts.append(here)
        if self._at == start:
            raise Unclear(f"{self._line[start]!r} stands where a word should")
        word = "".join(parts)
        if not self._words and self._line[start : self._at] in _KEYWORDS:
            raise Unclear(f"{word} decides what is run")
        self._words.append(word)

    def _single_quoted(self) -> str:
        end = self._line.find("'", self._at)
        if end < 0:
            raise Unclear("a quotation mark without its other half")
        text, self._at = self._line[self._at : end], end + 1
        return text

    def _double_quoted(self) -> str:
        parts: list[str] = []
        while self._at < len(self._line):
            here = self._line[self._at]
            self._at += 1
            if here == '"':
                return "".join(parts)
            if here == "\\" and self._line[self._at : self._at + 1] in ('"', "\\", "$", "`", "\n"):
                parts.append(self._escaped())
            elif here in "$`":
                parts.append(self._variable(here))
            else:
                parts.append(here)
        raise Unclear("a quotation mark without its other half")

    def _escaped(self) -> str:
        if self._at >= len(self._line):
            raise Unclear("the line goes on")
        self._at += 1
        here = self._line[self._at - 1]
        return "" if here == "\n" else here

    def _variable(self, mark: str) -> str:
        """Behind a `$` or a backtick. A `$` that begins nothing is itself."""
        following = self._line[self._at : self._at + 1]
        if mark == "`" or following in ("(", "'", '"'):
            raise Unclear("a substitution")
        if following == "{":
            end = self._line.find("}", self._at)
            name = self._line[self._at + 1 : end]
            if end < 0 or not name.isidentifier():
                raise Unclear("a substitution")
            self._at = end + 1
            return UNKNOWN
        if following.isalpha() or following == "_":
            while self._at < len(self._line) and (self._line[self._at].isalnum() or self._line[self._at] == "_"):
                self._at += 1
            return UNKNOWN
        if following and following in "0123456789@*#?!-$":
            self._at += 1
            return UNKNOWN
        return "$"
