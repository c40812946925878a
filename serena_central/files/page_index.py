"""Tells on which pages of a text words can stand, by an index of a tenth of the text's size.

A page is some kilobytes of whole lines. Letters, digits and `_` of ASCII that stand side by side are part of one word
of a text, so that a page has them only if one of its words does: the index lists each distinct word, and behind it the
pages that have it. Each digit in it is a `0`, so that searches for any digit are served, too. It knows no files, and
the text it was made of is the caller's.
"""

import re
import string
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

PAGE_BYTES = 8_192
"""At least: of smaller ones more words are the same."""

MOST_PAGES = 128
"""The number of a page is a byte that is part of no word."""

DENSEST = 0.33
"""Of a page's bytes that the index may take: it would take as much as the text itself of data in base64, or of a list
of hashes. A page with more is searched each time. Django's take a tenth."""

LONGEST_PAGE = 100_000
"""Bytes. A line that is longer (minified code, data) is searched each time: it may be a million words at once."""

LEAST_CHARS = 3
"""Of a part of a word that is looked up: fewer stand on nearly all pages."""

MOST_WORDS = 8
"""They tell enough of one alternative."""

FEW_PAGES = 32
"""They are searched in the time that looking for one more word takes."""

DIGIT = "\0"
"""Stands for any digit in a sequence of characters that is looked for."""

_ASCII = bytes(range(128))
_FOLDED = bytes(
    ord("0" if char in string.digits else char if char in string.ascii_letters + "_" else " ")
    for char in map(chr, range(256))
)
"""What each byte of a text becomes: anything between words is a space."""

_WORD = re.compile(f"[0-9A-Za-z_{DIGIT}]+")

_WORD_IN_ANY_CASE = re.compile(f"[0-9A-HJL-RT-Za-hjl-rt-z_{DIGIT}]+")
"""Without I, K and S: some letter beyond ASCII is the same in another case."""


class Words(NamedTuple):
    """Alternatives, the words of one of which a page must have: what `words_in` made of each. In `any_case`, all are in
    lower case."""

    alternatives: Sequence[Sequence[re.Pattern[bytes]]] = ()
    any_case: bool = False


def words_in(runs: Iterable[str], *, any_case: bool = False) -> list[re.Pattern[bytes]]:
    """The longest words, or parts of words, in what stands side by side, as expressions over an index."""
    parts = [part for run in runs for part in (_WORD_IN_ANY_CASE if any_case else _WORD).finditer(run)]
    parts.sort(key=lambda part: part.start() - part.end())
    found = (_looked_up(part, any_case=any_case) for part in parts[:MOST_WORDS])
    return [expression for expression in found if expression is not None]


def _looked_up(part: re.Match[str], *, any_case: bool) -> re.Pattern[bytes] | None:
    begins = part.start() > 0 and not _WORD.match(part.string, part.start() - 1)
    ends = part.end() < len(part.string) and not _WORD.match(part.string, part.end())
    if len(part[0]) < LEAST_CHARS and not (begins and ends):
        return None
    word = part[0].replace(DIGIT, "0").encode().translate(_FOLDED)
    if any_case:
        word = word.lower()
    # It starts with the word: an expression that starts with a literal is ten times quicker.
    before = rb"(?<![0A-Za-z_]%s)" % word if begins else b""
    return re.compile(word + before + (b"" if ends else rb"[0A-Za-z_]*") + rb"([\x80-\xff]+)")


class PageIndex:
    """Of one text. `end`: of the part of it that is indexed, and `size_bytes`: what the index takes."""

    def __init__(self, data: bytes) -> None:
        """Takes 20 ms of CPU per megabyte. Each line of `data` ends with a line feed."""
        import regex  # late, as in `files/pattern`

        other_digit = regex.compile(r"\d")
        size = max(PAGE_BYTES, -(-len(data) // MOST_PAGES))
        pages_of: dict[bytes, bytes] = {}
        unindexed = bytearray()
        self._starts = array("Q")
        start = 0
        while start < len(data):
            number = MOST_PAGES + len(self._starts)
            self._starts.append(start)
            end = data.find(b"\n", start + size) + 1 or len(data)
            page = data[start:end]
            start = end
            if len(page) > LONGEST_PAGE:
                unindexed.append(number)
                continue
            words = set(page.translate(_FOLDED).split())
            taken = len(words) + sum(map(len, words.difference(pages_of)))
            # A pattern's `\d` finds other digits than ASCII's, too.
            others = "" if page.isascii() else "".join(set(page.translate(None, _ASCII).decode("utf-8", "ignore")))
            if taken > len(page) * DENSEST or other_digit.search(others):
                unindexed.append(number)
                continue
            mark = bytes((number,))
            for word in words:
                pages_of[word] = pages_of.get(word, b"") + mark
        self._entries = b"".join(chain.from_iterable(pages_of.items()))
        self._unindexed = bytes(unindexed)
        self.end = len(data)
        self.size_bytes = len(self._entries) + self._starts.itemsize * len(self._starts)

    def spans(self, wanted: Words) -> list[tuple[int, int]]:
        """Begin and end of the pages that may have what is wanted, in order; neighbours are one."""
        entries = self._entries.lower() if wanted.any_case else self._entries
        pages = set(self._unindexed)
        for words in wanted.alternatives:
            pages |= _having(entries, words)
        return self._joined(sorted(pages))

    def _joined(self, pages: Iterable[int]) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for page in pages:
            number = page - MOST_PAGES
            begin = self._starts[number]
            end = self._starts[number + 1] if number + 1 < len(self._starts) else self.end
            if spans and spans[-1][1] == begin:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((begin, end))
        return spans


def _having(entries: bytes, words: Iterable[re.Pattern[bytes]]) -> set[int]:
    found: set[int] | None = None
    for word in words:
        pages = set(b"".join(word.findall(entries)))
        found = pages if found is None else found & pages
        if len(found) <= FEW_PAGES:
            break
    return found or set()
