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
from serena_central.files.needles import Needles

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
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|\\(?P<escaped>[ -/:-@\[-`{-~])|\\."
    r"|(?P<literal>[^.^$\x00-\x1f\x7f-\U0010ffff])|.",
    re.DOTALL,
)

_IGNORING_CASE = "(?i)"

DIGIT = "\0"
"""Stands for any digit in a sequence of characters that is looked for."""

_DIGITS = [b"%d" % digit for digit in range(10)]

_OTHER_DIGITS = [bytes((first,)) for first in b"\xd9\xdb\xdf\xe0\xe1\xea\xef\xf0"]
"""How those of other scripts begin: the first byte is enough of what is looked for."""

_CHANGING = re.compile("[IKSiks]+")
"""Letters that are, in another case, some letter beyond ASCII as well."""

_TIMES = re.compile(r"\{(\d+)(,?)")

MOST_TIMES = 100
"""As often a repeated character is looked for: more of them tell nothing more."""

MOST_TEXTS = 128
"""That stretches with digits may stand for, of all alternatives together."""

MOST_IN_ANY_CASE = 8
"""That those with letters in any case may stand for: of more, many more are looked at."""

LONGEST = 256
"""Characters of a stretch that stands for one text: what looks for a longer one may take minutes to be made …"""

LONGEST_OF_SEVERAL = 32
"""… and of one that stands for several, or has letters in any case: longer ones tell hardly more."""

_UNTOLD = re.compile(r"\(\?[^:]|\[\^?\[|\[:|\\[^\W_wWdDsSbBnrt]")
"""What makes a pattern too hard to say what each of its matches must contain: flags, named sets, codes."""


class Pattern:
    """A compiled pattern with a deadline. `sees_beyond`: lines have to be matched one by one to find all that match;
    `looks_around`: a match that is found in the whole text may be none in its line alone.

    `needed`: alternatives, the texts of one of which all stand in each match; none if that can't be told. They are
    ASCII. `literal`: the text that the pattern matches, if that is a single one. `with_digits`: finds the same in ASCII
    as a pattern of digits and other characters alone.
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
        runs = _runs(source.removeprefix(_IGNORING_CASE))
        self._runs = [list(filter(None, some)) for some in runs]
        self.needed = () if self._ignores_case else _needed(self._runs)
        self.needed_bytes = tuple(tuple(one.encode() for one in texts) for texts in self.needed)
        alone = runs[0][0] if self.needed and [len(some) for some in runs] == [1] else ""
        self.literal = alone if alone and DIGIT not in alone and len(alone) <= LONGEST else None
        self.with_digits = _with_digits(alone) if DIGIT in alone else None

    @cached_property
    def needles(self) -> Needles | None:
        """One of them stands in each match; None where that can't be told."""
        stretches = [_most_telling(runs, len(self._runs), any_case=self._ignores_case) for runs in self._runs]
        if not stretches or not all(stretches):
            return None
        return Needles(text for one in stretches for text in _texts(one, any_case=self._ignores_case))

    @property
    def needle_at(self) -> int:
        """How many characters of a match stand before its first needle, where `with_digits` is there."""
        ((run,),) = self._runs
        return run.index(_most_telling([run], 1, any_case=False))

    @cached_property
    def others(self) -> Sequence[bytes]:
        """What else stands in each match, beside one of `needles`."""
        if len(self.needed) != 1:
            return ()
        stretch = _most_telling(self._runs[0], 1, any_case=False)
        return [text.encode() for text in self.needed[0] if text not in stretch]

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
    digit; a new run, which may be empty, behind all else. Empty where that can't be told."""
    if _UNTOLD.search(source):
        return []
    alternatives, depth = [[""]], 0
    for piece in _PIECE.finditer(source):
        runs = alternatives[-1]
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        character = piece["escaped"] or piece["literal"] or (piece["digit"] and DIGIT)
        if piece["quantifier"]:
            _repeat(runs, piece["quantifier"])
        elif depth or character is None:
            runs.append("")
        elif character == "|" and piece["literal"]:
            alternatives.append([""])
        else:
            runs[-1] += character
    # Repeated characters are written out.
    return alternatives if sum(len(run) for runs in alternatives for run in runs) <= MAX_LENGTH else []


def _with_digits(run: str) -> re.Pattern[bytes]:
    return re.compile(b"".join(b"[0-9]" if one == DIGIT else re.escape(one.encode()) for one in run))


def _repeat(runs: list[str], quantifier: str) -> None:
    """Repeats the last character as often as it stands there at least; where there may be more of it, what follows
    stands beside the last of them."""
    times = _TIMES.match(quantifier)
    least = int(times[1]) if times else int(quantifier == "+")
    repeated = runs[-1][-1:] * min(least, MOST_TIMES)
    runs[-1] = runs[-1][:-1] + repeated
    if times is None or times[2] or not 0 < least <= MOST_TIMES:
        runs.append(repeated)


def _needed(runs: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    """For each alternative the texts that each match contains, which probably stands in the fewest lines first; none at
    all if some alternative has no such text."""
    # Of equals the last: in `get_\w+_url` the end of a name tells more than its beginning.
    texts = [[text for run in reversed(some) for text in reversed(run.split(DIGIT)) if text] for some in runs]
    found = tuple(tuple(sorted(some, key=_rarity, reverse=True)) for some in texts)
    return found if all(found) else ()


def _most_telling(runs: Iterable[str], alternatives: int, *, any_case: bool) -> str:
    """The stretch of these that probably stands in the fewest lines, of those that stand for few enough texts; empty if
    there is none."""
    most = max((MOST_IN_ANY_CASE if any_case else MOST_TEXTS) // alternatives, 1)
    stretches = [one for run in reversed(list(runs)) for one in reversed(_stretches(run, most, any_case=any_case))]
    return max(stretches, key=_rarity, default="")


def _stretches(run: str, most: int, *, any_case: bool) -> list[str]:
    """Parts of a run that stand for at most so many texts each, and begin with no digit."""
    found: list[str] = []
    for part in _CHANGING.split(run.lower()) if any_case else [run]:
        for start, first in enumerate(part):
            if first == DIGIT or (start and part[start - 1] != DIGIT and not any_case):
                continue
            count, end = 1, start
            while end < len(part):
                count *= 10 if part[end] == DIGIT else 2 if any_case and part[end].isalpha() else 1
                if count > most or end - start >= (LONGEST_OF_SEVERAL if any_case or count > 1 else LONGEST):
                    break
                end += 1
            found.append(part[start:end])
    return found


def _texts(stretch: str, *, any_case: bool) -> list[bytes]:
    """All that it stands for. With a digit of another script they end with the first byte of that."""
    texts, ending = [b""], list[bytes]()
    for character in stretch:
        own = [character.encode()]
        if character == DIGIT:
            own = _DIGITS
            ending += [text + other for text in texts for other in _OTHER_DIGITS]
        elif any_case and character.isalpha():
            own = [character.lower().encode(), character.upper().encode()]
        texts = [text + one for text in texts for one in own]
    return texts + ending


def _rarity(run: str) -> int:
    """Long is rare, and so is what is no lower-case letter: `class ` stands in more lines of code than `Model)`."""
    return len(run) + sum(not (character.islower() or character.isspace()) for character in run)
