"""Words that strings leave open, for something else to end or begin them: `"handle" + kind`, `f"{kind}_handler"`.

By the text alone, in whatever language.
"""

import re

from serena_central.files.words import pieces

_BEGUN = r"""["'`]([A-Za-z_]\w++)(?:[$#]?\{|%[sd]|["'`]\s*(?:\+|\.\s*(?:\$|concat\b|ucfirst\b)))"""
_ENDED = r"""[}%+.](?:(?<=\})|(?<=%)[sd]|(?<=[+.])\s*["'`])([A-Za-z_]\w{3,}+)["'`]"""
"""It begins with one of a set of characters, which is looked for twice as quickly as alternatives are. Shorter ends
(`_id`) are left out: nearly all of them become part of keys and messages."""

BEGUN, ENDED = re.compile(_BEGUN, re.ASCII), re.compile(_ENDED, re.ASCII)
"""Match where a string leaves a word (group 1) to be ended, or to be begun."""

_BEGUN_IN_BYTES, _ENDED_IN_BYTES = re.compile(_BEGUN.encode()), re.compile(_ENDED.encode())

_LONGEST = 256
"""Bytes of one such place: it is looked for so far beyond the piece of a text in which it begins, or begins to end."""


def open_words(data: bytes) -> set[bytes]:
    """One for each word that a text leaves open, as `when_begun` and `when_ended` write them."""
    words = set[bytes]()
    for start, end in pieces(data):
        around = max(start - _LONGEST, 0), end + _LONGEST
        words.update(b"__begun_" + word for word in _BEGUN_IN_BYTES.findall(data, *around))
        words.update(b"__ended_" + word for word in _ENDED_IN_BYTES.findall(data, *around))
    return words


def when_begun(word: str) -> str:
    """How `open_words` writes a word that is left to be ended."""
    return f"__begun_{word}"


def when_ended(word: str) -> str:
    """How `open_words` writes a word that is left to be begun."""
    return f"__ended_{word}"
