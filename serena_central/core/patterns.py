"""Matches foreign regular expressions within a deadline.

`re` holds the interpreter's lock while it matches and can't be interrupted: one catastrophic pattern, or one hostile
text, would stop the whole server, SIGTERM included. The `regex` module looks at the clock and lets other threads run.
It takes some 3 µs for a short text where `re` takes less than one, so that patterns of our own that no text makes slow
stay with `re`, behind the same interface.
"""

import logging
import math
import re
from typing import Any, Protocol

from serena_central.core.errors import ConfigError

logger = logging.getLogger(__name__)

DEADLINE_S = 0.25
"""Deadline for one text, of the process's CPU time: its other threads count. A good pattern takes microseconds …"""

CHARACTER_S = 0.000001
"""… and some 14 ns a character of a whole file, of which there may be 3,000,000: so much more for each."""

MAX_LENGTH = 10_000
"""Characters of a pattern; compiling is not interrupted."""

SHOWN = 120


class Match(Protocol):
    def __getitem__(self, group: str, /) -> str: ...
    def span(self) -> tuple[int, int]: ...


class Matcher(Protocol):
    """A compiled pattern. May be used in any thread."""

    @property
    def trouble(self) -> str:
        """Why it matches nothing any more; empty while all is well."""
        ...

    def fullmatch(self, text: str, /) -> Match | None: ...
    def search(self, text: str, /) -> Match | None: ...


class TooSlow(Exception):
    """A pattern did not come to the end of a text in time; the message names both."""


class FileMatcher:
    """A pattern that meets whole files, each of which somebody else has written. One that takes too long says nothing
    about the next one, and what its matches leave out must not be taken for known."""

    def __init__(self, key: str, source: str) -> None:
        """`key` names the setting.

        Raises:
            ConfigError: for what is no pattern.
        """
        self._key = key
        self._compiled = _compiled(key, source)

    def spans(self, text: str, most_s: float = math.inf) -> list[tuple[int, int]]:
        """Start and end of every match, none overlapping another; in no more than `most_s` of CPU time, where that is
        less than a text of this length has.

        Raises:
            TooSlow
        """
        limit_s = min(DEADLINE_S + len(text) * CHARACTER_S, most_s)
        try:
            return [match.span() for match in self._compiled.finditer(text, timeout=limit_s, concurrent=True)]
        except TimeoutError:
            raise TooSlow(f"{self._key} took longer than {limit_s:.3g} s on {len(text):,} characters") from None


class BoundedMatcher:
    """Somebody's pattern. A text that takes too long is the last: nothing matches from then on, as `trouble` says."""

    def __init__(self, key: str, source: str) -> None:
        """`key` names the setting.

        Raises:
            ConfigError: for what is no pattern.
        """
        self._compiled = _compiled(key, source)
        self._key = key
        self.groups = frozenset(self._compiled.groupindex)
        self.trouble = ""

    def fullmatch(self, text: str, /) -> Match | None:
        if self.trouble:
            return None
        try:
            return self._compiled.fullmatch(text, timeout=DEADLINE_S, concurrent=True)
        except TimeoutError:
            return self._give_up(text)

    def search(self, text: str, /) -> Match | None:
        if self.trouble:
            return None
        try:
            return self._compiled.search(text, timeout=DEADLINE_S, concurrent=True)
        except TimeoutError:
            return self._give_up(text)

    def _give_up(self, text: str) -> None:
        source = self._compiled.pattern
        shown = source if len(source) <= SHOWN else source[:SHOWN] + "…"
        self.trouble = (
            f"{self._key} is disabled: it took longer than {DEADLINE_S:g} s on a text of {len(text)} "
            f"characters. Rewrite it without ambiguous repetition: {shown}"
        )
        logger.warning("%s", self.trouble)


class OwnMatcher:
    """A pattern of the product's own, by `re`."""

    trouble = ""

    def __init__(self, source: str) -> None:
        self._compiled = re.compile(source)
        self.fullmatch = self._compiled.fullmatch
        self.search = self._compiled.search


def _compiled(key: str, source: str) -> Any:
    """Of the `regex` module, which has no types."""
    if len(source) > MAX_LENGTH:
        raise ConfigError(key, f"has {len(source)} characters; the limit is {MAX_LENGTH}")
    import regex  # late: it takes 3 MB, and 30 ms of a start

    try:
        return regex.compile(source)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise ConfigError(key, f"is not a valid regular expression: {error}") from error
