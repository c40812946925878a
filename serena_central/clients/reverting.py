"""Reverts a change of a file that was edited since: a three-way merge by lines, as `diff3` does it.

It does not interpret the lines; callers check the result.
"""

import difflib
from typing import NamedTuple

MOST_LINES = 4000
"""Between the first and the last difference: comparing takes time by the square of it."""


class Hunk(NamedTuple):
    """Lines `start` to `end` (0-based, half-open) of the common text, and what stands in their place."""

    start: int
    end: int
    lines: list[bytes]


def reverted(before: bytes, after: bytes, now: bytes) -> bytes | None:
    """`now`, an edited `after`, with the change from `before` to `after` reverted.

    None where an edit touches the lines that changed, or there is too much to compare.
    """
    common = after.splitlines(keepends=True)
    ours, theirs = _hunks(common, before), _hunks(common, now)
    if ours is None or theirs is None:
        return None
    if any(one.start <= other.end and other.start <= one.end for one in ours for other in theirs):
        return None
    for hunk in sorted([*ours, *theirs], reverse=True):
        common[hunk.start : hunk.end] = hunk.lines
    return b"".join(common)


def _hunks(common: list[bytes], text: bytes) -> list[Hunk] | None:
    """What leads from the common text to the other."""
    other = text.splitlines(keepends=True)
    least = min(len(common), len(other))
    head = next((place for place in range(least) if common[place] != other[place]), least)
    tail = next((place for place in range(least - head) if common[-1 - place] != other[-1 - place]), least - head)
    old, new = common[head : len(common) - tail], other[head : len(other) - tail]
    if max(len(old), len(new)) > MOST_LINES:
        return None
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [Hunk(head + a, head + b, new[c:d]) for kind, a, b, c, d in codes if kind != "equal"]
