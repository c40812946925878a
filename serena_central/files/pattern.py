"""Regular expressions from callers: compiled as Python's `re` would read them, and matched within a deadline.

`re` holds the interpreter's lock while it matches and can't be interrupted: one catastrophic pattern would stop the
server. The `regex` module releases the lock, looks at the clock while it matches, and is many times quicker where a
pattern doesn't start with a literal. It reads `{e}` and its like as fuzzy matching, which nobody asks for who searches
for an f-string; so braces that are no quantifier are escaped.
"""

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from serena_central.core.errors import InvalidArguments

if TYPE_CHECKING:
    import regex

MAX_LENGTH = 10_000
"""Characters of a pattern; nobody writes a longer one, and compiling is not interrupted by a deadline."""

_BRACE = re.compile(r"(?P<kept>\\[pPN]\{[^}]*\}|\\.|\{(?:\d+(?:,\d*)?|,\d*)\})|\{", re.DOTALL)

_SEES_BEYOND = re.compile(r"\(\?(?:<?!|[>(|&R0-9]|[a-zA-Z]*-)|\\[AZzGK]|[+*?}]\+")
"""What may keep a pattern that matches in a line alone from matching at the same place in the whole text: negative
look-arounds, atomic and possessive parts, conditions, ends of the text, flags that are turned off."""

_LOOKS_AROUND = re.compile(r"\(\?<?=")
"""What may let a pattern match in the whole text where it does not in the line alone, although the match lies in it."""

_PIECE = re.compile(
    r"(?P<quantifier>[*?+]|\{(?:\d+(?:,\d*)?|,\d*)\})|\[\^?\]?(?:\\.|[^]\\])*\]|(?P<open>\((?:\?:)?)|(?P<close>\))"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])|\\.|(?P<literal>[^.^$\x00-\x1f\x7f-\U0010ffff])|.",
    re.DOTALL,
)

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")

_UNTOLD = re.compile(r"\(\?[^:]|\[\^?\[|\[:|\\[^\W_wWdDsSbBnrt]")
"""What makes a pattern too hard to say what each of its matches must contain: flags, named sets, codes."""


class Pattern:
    """A compiled pattern with a deadline. `sees_beyond`: lines have to be matched one by one to find all that match;
    `looks_around`: a match that is found in the whole text may be none in its line alone.

    `needed`: alternatives, the texts of one of which all stand in each match; none if that can't be told. They are
    ASCII. `literal`: the text that the pattern matches, if that is a single one.
    """

    def __init__(self, source: str, *, dot_matches_newline: bool, deadline: float) -> None:
        """`deadline` is a time of `time.monotonic()`.

        Raises:
            InvalidArguments: the pattern is empty, too long or not well-formed.
        """
        if not source:
            raise InvalidArguments("The pattern is empty: it would match everything.")
        if len(source) > MAX_LENGTH:
            raise InvalidArguments(f"The pattern has {len(source)} characters; the limit is {MAX_LENGTH}.")
        import regex  # late: it takes 3 MB, and 30 ms of a start

        flags = regex.MULTILINE | (regex.DOTALL if dot_matches_newline else 0)
        try:
            self._compiled = regex.compile(_BRACE.sub(_keep_or_escape, source), flags)
        except (regex.error, RecursionError, OverflowError) as error:
            raise InvalidArguments(
                f"{source!r} is not a valid regular expression: {error}. To search for this exact text, pass literal: "
                f"true, or escape it: {regex.escape(source)}"
            ) from error
        self._deadline = deadline
        self.sees_beyond = _SEES_BEYOND.search(source) is not None
        self.looks_around = _LOOKS_AROUND.search(source) is not None
        self.needed = _needed(source)
        self.needed_bytes = tuple(tuple(one.encode() for one in texts) for texts in self.needed)
        literal = _ESCAPED.sub(r"\1", source)
        self.literal = literal if self.needed == ((literal,),) else None

    def search(self, text: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Start and end of the first match between `start` and `end`.

        Raises:
            TimeoutError
        """
        found = self._compiled.search(text, start, end, timeout=self._time_left(), concurrent=True)
        return found.span() if found else None

    def find_all(self, text: str, start: int = 0) -> Iterator[tuple[int, int]]:
        """Start and end of every match from `start` on, none overlapping another.

        Raises:
            TimeoutError
        """
        for found in self._compiled.finditer(text, start, timeout=self._time_left(), concurrent=True):
            yield found.span()

    def matches(self, text: str) -> Iterator["regex.Match[str]"]:
        """Every match with its groups, none overlapping another.

        Raises:
            TimeoutError
        """
        yield from self._compiled.finditer(text, timeout=self._time_left(), concurrent=True)

    def group_starts(self, text: str) -> list[list[int]]:
        """For every match, where each of its groups starts; -1 for one that took no part.

        Raises:
            TimeoutError
        """
        found = self._compiled.finditer(text, timeout=self._time_left(), concurrent=True)
        return [[match.start(number + 1) for number in range(self._compiled.groups)] for match in found]

    def _time_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _keep_or_escape(found: re.Match[str]) -> str:
    return found["kept"] or r"\{"


def _needed(source: str) -> tuple[tuple[str, ...], ...]:
    """For each alternative the runs of literal characters outside of all groups, which probably stands in the fewest
    lines first; none at all if some alternative has no such run."""
    if _UNTOLD.search(source):
        return ()
    alternatives, depth = [[""]], 0
    for piece in _PIECE.finditer(source):
        runs = alternatives[-1]
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        character = piece["escaped"] or piece["literal"]
        if depth or character is None:
            if piece["quantifier"] not in (None, "+"):
                runs[-1] = runs[-1][:-1]  # it may stand there no time
            runs.append("")
        elif character == "|" and piece["literal"]:
            alternatives.append([""])
        else:
            runs[-1] += character
    # Of equals the last: in `get_\w+_url` the end of a name tells more than its beginning.
    found = tuple(tuple(sorted(filter(None, reversed(runs)), key=_rarity, reverse=True)) for runs in alternatives)
    return found if all(found) else ()


def _rarity(run: str) -> int:
    """Long is rare, and so is what is no lower-case letter: `class ` stands in more lines of code than `Model)`."""
    return len(run) + sum(not (character.islower() or character.isspace()) for character in run)
