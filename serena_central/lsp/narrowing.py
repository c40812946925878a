"""Splits a replacement of a stretch of text into those of the words that it changes. Pure.

Some servers send one replacement for each file, from the first place that they change to the last (jdtls). What is in
between would pass for changed as well: a reference that the server left out, or the old name in a string.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from serena_central.core.text import Range, Text
from serena_central.lsp.answers import Replacement

MOST_COMPARED = 500
"""Words and signs of lines whose number is changed, too: comparing these takes time in the square of it."""

_PART = re.compile(r"\w+|\s+|[^\w\s]")

_Pair = tuple[str, str]
"""A part of a text, and what it becomes, perhaps itself."""


def narrowed(text: Text, replacement: Replacement) -> Iterable[Replacement]:
    """The replacements of single words that have the same effect; or the one as it is, where it is small already."""
    old, new = text.slice(replacement.range), replacement.new_text
    is_long = replacement.range.start.line0 != replacement.range.end.line0
    if not is_long and len(_PART.findall(old)) != len(_PART.findall(new)):
        return [replacement]
    words = (pair for lines in _by_lines(old, new) for pair in _by_words(*lines))
    return _replacements(text, replacement, words)


def _by_lines(old: str, new: str) -> Iterable[_Pair]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(before) == len(after):
        return zip(before, after, strict=True)
    return _aligned(before, after, SequenceMatcher(None, before, after))


def _by_words(old: str, new: str) -> Iterable[_Pair]:
    if old == new:
        return [(old, new)]
    before, after = _PART.findall(old), _PART.findall(new)
    if len(before) == len(after):
        return zip(before, after, strict=True)
    if len(before) + len(after) > MOST_COMPARED:
        return [(old, new)]
    return _aligned(before, after, SequenceMatcher(None, before, after, autojunk=False))


def _aligned(old: list[str], new: list[str], compared: SequenceMatcher[str]) -> Iterator[_Pair]:
    for _, first, end, new_first, new_end in compared.get_opcodes():
        yield "".join(old[first:end]), "".join(new[new_first:new_end])


def _replacements(text: Text, whole: Replacement, pairs: Iterable[_Pair]) -> Iterator[Replacement]:
    offset = text.offset(whole.range.start)
    for old, new in pairs:
        if old != new:
            yield Replacement(Range(text.position(offset), text.position(offset + len(old))), new)
        offset += len(old)
