"""Words that strings leave open, for something else to end or begin them: `"handle" + kind`, `f"{kind}_handler"`.

By the text alone, in whatever language.
"""

import re
from collections.abc import Iterable

from serena_central.files.words import pieces

_BEGUN = r"""["'`]({})(?:[$#]?\{{|%[sd]|["'`]\s*(?:\+|\.\s*(?:\$|concat\b|ucfirst\b)))"""
_ENDED = r"""[}}%+.](?:(?<=\}})|(?<=%)[sd]|(?<=[+.])\s*["'`])({})["'`]"""
"""It begins with one of a set of characters, which is looked for twice as quickly as alternatives are."""

_ANY_BEGUN = re.compile(_BEGUN.format(r"[A-Za-z_]\w++").encode())
_ANY_ENDED = re.compile(_ENDED.format(r"[A-Za-z_]\w{3,}+").encode())
"""Shorter ends (`_id`) are left out: nearly all of them become part of keys and messages."""

_LONGEST = 256
"""Bytes of one such place: it is looked for so far beyond the piece of a text in which it begins, or begins to end."""


def begun_by(words: Iterable[str]) -> re.Pattern[str]:
    """Matches where a string leaves one of some words (group 1) to be ended."""
    return re.compile(_BEGUN.format(_either(words)))


def ended_by(words: Iterable[str]) -> re.Pattern[str]:
    """Matches where a string leaves one of some words (group 1) to be begun."""
    return re.compile(_ENDED.format(_either(words)))


def open_words(data: bytes) -> set[bytes]:
    """One for each word that a text leaves open, as `when_begun` and `when_ended` write them."""
    words = set[bytes]()
    for start, end in pieces(data):
        around = max(start - _LONGEST, 0), end + _LONGEST
        words.update(b"__begun_" + word for word in _ANY_BEGUN.findall(data, *around))
        words.update(b"__ended_" + word for word in _ANY_ENDED.findall(data, *around))
    return words


def when_begun(word: str) -> str:
    """How `open_words` writes a word that is left to be ended."""
    return f"__begun_{word}"


def when_ended(word: str) -> str:
    """How `open_words` writes a word that is left to be begun."""
    return f"__ended_{word}"


def _either(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words)) or "(?!)"
