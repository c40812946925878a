"""Splits a replacement of a stretch of text into those of the words that it changes. Pure.

Some servers send one replacement for each file, from the first place that they change to the last (jdtls). What is in
between would pass for changed as well: a reference that the server left out, or the old name in a string.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from serena_central.core.text import Range, Text
from serena_central.lsp.answers import Replacement

MOST_COMPARED = 4_000
"""Words and signs of a stretch whose number is changed, too: comparing these takes time in the square of it."""

_PART = re.compile(r"\w+|\s+|[^\w\s]")


def narrowed(text: Text, replacement: Replacement) -> Iterable[Replacement]:
    """The replacements of single words that have the same effect; or the one as it is, where it is small already."""
    old, new = _PART.findall(text.slice(replacement.range)), _PART.findall(replacement.new_text)
    is_long = replacement.range.start.line0 != replacement.range.end.line0
    if len(old) == len(new) > 1:
        changes = [(at, at + 1, at, at + 1) for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    elif is_long and max(len(old), len(new)) <= MOST_COMPARED:
        compared = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        changes = [places for tag, *places in compared if tag != "equal"]
    else:
        return [replacement]
    return _replacements(text, replacement, old, new, changes)


def _replacements(
    text: Text, whole: Replacement, old: list[str], new: list[str], changes: Iterable[Iterable[int]]
) -> Iterator[Replacement]:
    """`changes`: first part and end in `old`, first part and end in `new`, in order."""
    offset, seen = text.offset(whole.range.start), 0
    for first, end, new_first, new_end in changes:
        offset += sum(map(len, old[seen:first]))
        length = sum(map(len, old[first:end]))
        place = Range(text.position(offset), text.position(offset + length))
        yield Replacement(place, "".join(new[new_first:new_end]))
        offset, seen = offset + length, end
