"""Reversible patches: what an edit changed in a file, small enough to keep, exact to the last byte.

A patch is reversed where its new lines still stand, wherever other changes have moved them. Pure.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec

from serena_central.editing.plan import SURVIVES, Hunk, lines_of

MATCHED_LINES = 400
"""Of larger hunks all lines count as made: comparing them takes too long."""


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file. Paths are root-relative; `old_hash` covers the bytes that were on disk; so many as
    `folders` were made for a file that was created."""

    path: str
    moved_to: str | None = None
    created: bool = False
    folders: int = 0
    deleted: bool = False
    old_hash: str | None = None
    encoding: str = "utf-8"
    bom: bool = False
    hunks: list[Hunk] = []


class ChangedLines(NamedTuple):
    """Lines of the old text, and those of the new one that stand in their place; 0-based, ends exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class MovedOn(Exception):
    """The lines that a patch made are not there any more; the message says which."""


def reverted(text: str, hunks: list[Hunk]) -> str:
    """The text without what the hunks made of it.

    Raises:
        MovedOn
    """
    return reverted_with_line(text, hunks, None)[0]


def reverted_with_line(text: str, hunks: list[Hunk], line0: int | None) -> tuple[str, int | None]:
    """The same, and the line that `line0` was before; None for one that the hunks made.

    Raises:
        MovedOn
    """
    lines = lines_of(text)
    moved = 0
    for hunk in hunks:
        before, after = lines_of(hunk.before.decode(*SURVIVES)), lines_of(hunk.after.decode(*SURVIVES))
        start = _find(lines, after, hunk.line0 + moved)
        if line0 is not None and line0 >= start + len(after):
            line0 += len(before) - len(after)
        elif line0 is not None and line0 >= start:
            line0 = _line_before(before, after, line0 - start, start)
        lines[start : start + len(after)] = before
        moved += len(before) - len(after) + start - (hunk.line0 + moved)
    return "".join(lines), line0


def _line_before(before: list[str], after: list[str], line0: int, start: int) -> int | None:
    """What line of a hunk's old text a line of its new one was, counted from `start` on."""
    for kind, old, _, new, end in _stretches(before, after):
        if new <= line0 < end:
            return start + old + line0 - new if kind == "equal" else None
    return None


def changed_lines(hunks: list[Hunk]) -> list[ChangedLines]:
    """The lines that hunks changed, in order."""
    changed: list[ChangedLines] = []
    grown = 0
    for hunk in hunks:
        before, after = lines_of(hunk.before.decode(*SURVIVES)), lines_of(hunk.after.decode(*SURVIVES))
        old0, new0 = hunk.line0 - grown, hunk.line0
        changed += [
            ChangedLines(old0 + start, old0 + end, new0 + new_start, new0 + new_end)
            for kind, start, end, new_start, new_end in _stretches(before, after)
            if kind != "equal"
        ]
        grown += len(after) - len(before)
    return changed


def lines_made(text: str, hunks: list[Hunk]) -> list[int]:
    """0-based lines of a text that hunks made, or where they took some out; without those that have changed since."""
    lines = lines_of(text)
    made: list[int] = []
    for hunk in hunks:
        before, after = (part.decode(*SURVIVES) for part in (hunk.before, hunk.after))
        try:
            start = _find(lines, lines_of(after), hunk.line0)
        except MovedOn:
            continue
        for kind, _, _, first, end in _stretches(lines_of(before), lines_of(after)):
            if kind != "equal":
                made += range(start + first, start + max(end, first + 1))
    return made


def _stretches(before: list[str], after: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) > MATCHED_LINES:
        return [("replace", 0, len(before), 0, len(after))]
    return SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()


def _telling(lines: list[str]) -> str:
    """The line nearest to the middle that is not blank, cut short."""
    middle = len(lines) // 2
    told = [(abs(number - middle), line.strip()[:80]) for number, line in enumerate(lines) if line.strip()]
    return min(told)[1] if told else ""


def _find(lines: list[str], wanted: list[str], expected: int) -> int:
    """Where the lines stand: at the expected place, else at the one place where they do.

    Raises:
        MovedOn
    """
    if not wanted and lines:
        raise MovedOn("the edit emptied the file, which has content now")
    if lines[expected : expected + len(wanted)] == wanted:
        return expected
    last = len(lines) - len(wanted)
    places = [
        start for start in range(last + 1) if lines[start] == wanted[0] and lines[start : start + len(wanted)] == wanted
    ]
    if len(places) != 1:
        shown = _telling(wanted)
        raise MovedOn(f"the lines around {shown!r} changed since" if not places else f"{shown!r} occurs several times")
    return places[0]
