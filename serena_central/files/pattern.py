"""Regular expressions from callers: compiled as Python's `re` would read them, and matched within a deadline.

`re` holds the interpreter's lock while it matches and can't be interrupted: one catastrophic pattern would stop the
server. The `regex` module releases the lock, looks at the clock while it matches, and is many times quicker where a
pattern doesn't start with a literal. It reads `{e}` and its like as fuzzy matching, which nobody asks for who searches
for an f-string; so braces that are no quantifier are escaped.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from serena_central.core.errors import InvalidArguments
from serena_central.files.page_index import DIGIT, Words, words_in

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
    r"(?P<quantifier>[*?+]|\{(?:\d+(?:,\d*)?|,\d*)\})|(?P<digit>\\d|\[0-9\])|\[\^?\]?(?:\\.|[^]\\])*\]"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|\\(?P<escaped>[!-/:-@\[-`{-~])|\\.|(?P<literal>[^.^$\x00-\x1f\x7f-\U0010ffff])|.",
    re.DOTALL,
)

_IGNORING_CASE = "(?i)"

_ANY_DIGIT = rb"(?:[0-9]|[\xc0-\xff][\x80-\xbf]{1,3})"
"""Or some other letter that is not ASCII's."""

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")

_TIMES = re.compile(r"\{(\d+)(,?)")

MOST_TIMES = 100
"""As often a repeated character is looked for: more of them tell nothing more."""

MOST_ALTERNATIVES = 50
"""Each is looked for by itself: of more, the whole text is matched as quickly."""

TELLING_CHARS = 3
"""Shorter texts stand in too many lines: with digits around them they stand in fewer."""

_UNTOLD = re.compile(r"\(\?[^:]|\[\^?\[|\[:|\\[^\W_wWdDsSbBnrt]")
"""What makes a pattern too hard to say what each of its matches must contain: flags, named sets, codes."""


class Pattern:
    """A compiled pattern with a deadline. `sees_beyond`: lines have to be matched one by one to find all that match;
    `looks_around`: a match that is found in the whole text may be none in its line alone.

    `needed`: alternatives, the texts of one of which all stand in each match; none if that can't be told. They are
    ASCII. `literal`: the text that the pattern matches, if that is a single one. `around_digits`: for each alternative
    an expression that finds something in each match; None where its needed texts tell more.
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
        self._ignores_case = source.startswith(_IGNORING_CASE)
        self._runs = _runs(source.removeprefix(_IGNORING_CASE))
        self.needed = () if self._ignores_case else _needed(self._runs)
        self.needed_bytes = tuple(tuple(one.encode() for one in texts) for texts in self.needed)
        literal = _ESCAPED.sub(r"\1", source)
        self.literal = literal if self.needed == ((literal,),) else None

    @cached_property
    def words(self) -> Words:
        """What is needed, to be looked up in an index of words; nothing where that can't tell."""
        if len(self._runs) > MOST_ALTERNATIVES:
            return Words()
        words = [words_in(runs, any_case=self._ignores_case) for runs in self._runs]
        return Words(words, self._ignores_case) if all(words) else Words()

    @cached_property
    def around_digits(self) -> Sequence[re.Pattern[bytes] | None]:
        few = len(self._runs) <= MOST_ALTERNATIVES
        return [
            _around_digits(runs) if few and max(map(len, texts)) < TELLING_CHARS else None
            for runs, texts in zip(self._runs, self.needed, strict=False)
        ]

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


def _runs(source: str) -> list[list[str]]:
    """For each alternative the characters that stand side by side in each match, outside of all groups; `DIGIT` for any
    digit. Empty where that can't be told."""
    if _UNTOLD.search(source):
        return []
    alternatives, depth = [[""]], 0
    for piece in _PIECE.finditer(source):
        runs = alternatives[-1]
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        character = piece["escaped"] or piece["literal"] or (piece["digit"] and DIGIT)
        if depth or character is None:
            if _repeated(runs, piece["quantifier"]):
                continue
            runs.append("")
        elif character == "|" and piece["literal"]:
            alternatives.append([""])
        else:
            runs[-1] += character
    return [list(filter(None, runs)) for runs in alternatives]


def _repeated(runs: list[str], quantifier: str | None) -> bool:
    """Repeats the last character as often as it stands there at least; whether what follows stands side by side."""
    if quantifier in (None, "+"):
        return False
    times = _TIMES.match(quantifier)
    least = int(times[1]) if times else 0  # it may stand there no time
    runs[-1] = runs[-1][:-1] + runs[-1][-1:] * min(least, MOST_TIMES)
    return times is not None and not times[2] and 0 < least <= MOST_TIMES


def _needed(runs: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    """For each alternative the texts that each match contains, which probably stands in the fewest lines first; none at
    all if some alternative has no such text."""
    # Of equals the last: in `get_\w+_url` the end of a name tells more than its beginning.
    texts = [[text for run in reversed(some) for text in reversed(run.split(DIGIT)) if text] for some in runs]
    found = tuple(tuple(sorted(some, key=_rarity, reverse=True)) for some in texts)
    return found if all(found) else ()


def _around_digits(runs: Iterable[str]) -> re.Pattern[bytes] | None:
    """Finds the longest run with digits and something else, by the first of the latter."""
    run = max((one for one in runs if DIGIT in one and one.strip(DIGIT)), key=len, default=None)
    if run is None:
        return None
    behind = run.lstrip(DIGIT)
    text = behind.split(DIGIT)[0]
    literal = re.escape(text.encode())
    before = rb"(?<=[0-9\x80-\xff]%s)" % literal if behind != run else b""
    after = (_ANY_DIGIT if one == DIGIT else re.escape(one.encode()) for one in behind[len(text) :])
    return re.compile(literal + before + b"".join(after))


def _rarity(run: str) -> int:
    """Long is rare, and so is what is no lower-case letter: `class ` stands in more lines of code than `Model)`."""
    return len(run) + sum(not (character.islower() or character.isspace()) for character in run)
