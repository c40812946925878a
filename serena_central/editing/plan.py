"""Computes the new text of a file from edits, and the difference between the two. Pure: it never touches the disk.

Positions are code points (core/text.py). Texts keep their line ends; `with_newlines` gives what callers bring the line
ends of the file that it goes into.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from itertools import compress, groupby
from operator import ne
from typing import NamedTuple

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.core.quoting import escaped
from serena_central.core.text import Range, Text

_LINE_END = re.compile(r"\r\n|\n|\r")

DIFF_CONTEXT = 3
"""Unchanged lines shown before and after each change of a diff."""

FEW_CHARS = 256
"""Compared first to see how far texts are alike."""

SURVIVES = ("utf-8", "surrogatepass")
"""Texts may hold lone surrogates, for bytes that were no text."""


class TextEdit(NamedTuple):
    """What stands in `range` is replaced by `new_text`."""

    range: Range
    new_text: str


class LineCounts(NamedTuple):
    added: int
    removed: int


def apply_edits(text: Text, edits: Iterable[TextEdit]) -> str:
    """The text after all edits, whose ranges all mean the text as it was. Insertions at one place keep their order.

    Raises:
        InvalidArguments: two edits overlap.
    """
    spans = sorted(
        ((text.offset(edit.range.start), text.offset(edit.range.end), edit.new_text) for edit in edits),
        key=lambda span: span[:2],
    )
    parts: list[str] = []
    reached = 0
    for start, end, new_text in spans:
        if start < reached or end < start:
            raise InvalidArguments(f"Two edits overlap at line {text.position(start).line0}; nothing was changed.")
        parts += (text.content[reached:start], new_text)
        reached = end
    parts.append(text.content[reached:])
    return "".join(parts)


def with_newlines(text: str, newline: str) -> str:
    """The text with all its line ends written as `newline`."""
    return _LINE_END.sub(lambda _: newline, text) if newline != "\n" or "\r" in text else text


def lines_of(text: str) -> list[str]:
    """The lines of a text with their line ends; the last one has none if the text doesn't end in one."""
    if _ends_in_newlines(text):
        return list(StringIO(text))  # in an eighth of the time that a search takes
    ends = [match.end() for match in _LINE_END.finditer(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    starts = [0, *ends[:-1]]
    return [text[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


def _ends_in_newlines(text: str) -> bool:
    """Whether a line feed, and nothing else, ends the lines of a text, with or without a carriage return before it."""
    return "\r" not in text or text.count("\r") == text.count("\r\n")


Change = tuple[str, int, int, int, int]
"""As difflib's opcodes: tag, lines of the old text, lines of the new one."""


class Hunk(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of lines with a few unchanged ones around it; `line0` is where `after` begins in the new text."""

    line0: int
    before: bytes
    after: bytes


class Stretch(NamedTuple):
    """Lines of two texts from the same 0-based line `first0` on, and what differs in them."""

    first0: int
    old: list[str]
    new: list[str]
    changes: list[Change]

    @property
    def groups(self) -> Iterable[list[Change]]:
        """The changes of each hunk, with the unchanged lines around them."""
        return _grouped(self.changes)


class Difference(NamedTuple):
    """All lines in which two texts differ, with those around them. No hunk reaches from one stretch to the next."""

    stretches: list[Stretch]

    @property
    def counts(self) -> LineCounts:
        """How many lines a diff adds and removes."""
        added = removed = 0
        for stretch in self.stretches:
            for tag, first, last, new_first, new_last in stretch.changes:
                if tag != "equal":
                    removed += last - first
                    added += new_last - new_first
        return LineCounts(added, removed)

    @property
    def hunks(self) -> list[Hunk]:
        """Where the texts differ."""
        return [
            Hunk(
                stretch.first0 + group[0][3],
                "".join(stretch.old[group[0][1] : group[-1][2]]).encode(*SURVIVES),
                "".join(stretch.new[group[0][3] : group[-1][4]]).encode(*SURVIVES),
            )
            for stretch in self.stretches
            for group in stretch.groups
        ]


def unified_diff(
    path: str, before: str | None, after: str | None, *, new_path: str | None = None, known: Difference | None = None
) -> str:
    """A unified diff, as git shows it; None stands for a file that does not exist. Empty if nothing differs. `known` is
    the difference of the two, where it has been looked for.

    Carriage returns are left out of the lines, so that a diff reads the same whatever the file's line ends are.
    """
    source = f"a/{escaped(path)}" if before is not None else "/dev/null"
    target = f"b/{escaped(new_path or path)}" if after is not None else "/dev/null"
    body = "".join(_shown(line) for line in _diff_lines(known or difference(before, after)))
    if not body and source.partition("/")[2] == target.partition("/")[2]:
        return ""
    return f"--- {source}\n+++ {target}\n{body}"


def changed_span(before: str, after: str) -> tuple[int, int, int]:
    """The one stretch that holds all differences, in offsets: its start, its end in the old text and in the new one."""
    shorter = min(len(before), len(after))
    head = _longest(shorter, lambda low, high: before[low:high] == after[low:high])
    old_end, new_end = len(before), len(after)
    tail = _longest(
        shorter - head,
        lambda low, high: before[old_end - high : old_end - low] == after[new_end - high : new_end - low],
    )
    return head, old_end - tail, new_end - tail


def _longest(most: int, alike: Callable[[int, int], bool]) -> int:
    """How far the texts are alike: by slices, which are compared far quicker than characters, in twice as many
    characters each time, and by halving the slice that is not alike."""
    low, step = 0, FEW_CHARS
    while low + step < most and alike(low, low + step):
        low, step = low + step, 2 * step
    high = min(low + step, most)
    while low < high:
        middle = (low + high + 1) // 2
        if alike(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def difference(before: str | None, after: str | None) -> Difference:
    """What differs between two texts; None is an empty one. Looks only at the lines that differ and at the context
    around them: edits are small and files are not."""
    before, after = before or "", after or ""
    head, old_end, new_end = changed_span(before, after)
    whole = _Part(head, old_end, head, new_end)
    stretches: list[Stretch] = []
    first0 = counted = 0
    for part in _changed_in_place(before, after, whole) or [whole]:
        start, stop = part.start, part.end
        for _ in range(DIFF_CONTEXT + 1):
            start = before.rfind("\n", 0, max(start - 1, 0)) + 1
        for _ in range(DIFF_CONTEXT + 1):
            stop = before.find("\n", stop) + 1 or len(before)
        old = lines_of(before[start:stop])
        new = lines_of(after[part.new_start - (part.start - start) : part.new_end + (stop - part.end)])
        first0 += before.count("\n", counted, start)
        if "\r" in before:
            first0 += before.count("\r", counted, start) - before.count("\r\n", counted, start)
        counted = start
        stretches.append(Stretch(first0, old, new, _changes(old, new)))
    return Difference(stretches)


class _Part(NamedTuple):
    """A part of a text and what it became, in offsets."""

    start: int
    end: int
    new_start: int
    new_end: int


def _changed_in_place(before: str, after: str, whole: _Part) -> list[_Part]:
    """The parts of `whole` that differ, one for each hunk, if lines were only changed in place: a rename changes lines
    all over a file, and those in between need not be looked at. None if it is not so, or can't be told."""
    old, old_end, new, new_end = whole
    if before.endswith("\n") != after.endswith("\n") or not (_ends_in_newlines(before) and _ends_in_newlines(after)):
        return []
    parts: list[_Part] = []
    removed: set[str] = set()
    added: set[str] = set()
    while True:
        end, to_end = _line_end(before, old), _line_end(after, new)
        removed.add(line := before[before.rfind("\n", 0, old) + 1 : end])
        added.add(new_line := after[after.rfind("\n", 0, new) + 1 : to_end])
        most = min(old_end - end, new_end - to_end)
        if line in added or new_line in removed or (most <= 0 and old_end - end != new_end - to_end):
            return []  # lines were moved, or are more or fewer
        if parts and not _is_far(before, parts[-1].end + 1, old):
            parts[-1] = parts[-1]._replace(end=end, new_end=to_end)
        else:
            parts.append(_Part(old, end, new, to_end))
        alike = _alike_from(before, end, after, to_end, most)
        old, new = end + alike, to_end + alike
        if alike >= most and old - old_end == new - new_end:
            return parts


def _alike_from(before: str, start: int, after: str, new_start: int, most: int) -> int:
    return _longest(
        most, lambda low, high: before[start + low : start + high] == after[new_start + low : new_start + high]
    )


def _is_far(text: str, start: int, end: int) -> bool:
    """Whether so many lines begin between two places that changes there are shown apart."""
    for _ in range(2 * DIFF_CONTEXT + 1):
        start = text.find("\n", start, end) + 1
        if not start:
            return False
    return True


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _diff_lines(difference: Difference) -> Iterable[str]:
    for stretch in difference.stretches:
        first0, old, new = stretch.first0, stretch.old, stretch.new
        for group in stretch.groups:
            first, last = group[0], group[-1]
            yield f"@@ -{_span(first0 + first[1], first0 + last[2])} +{_span(first0 + first[3], first0 + last[4])} @@\n"
            for tag, start, end, new_start, new_end in group:
                if tag == "equal":
                    yield from (f" {line}" for line in old[start:end])
                else:
                    yield from (f"-{line}" for line in old[start:end])
                    yield from (f"+{line}" for line in new[new_start:new_end])


def _changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What differs. Only the middle, between equal heads and tails, is compared."""
    head = 0
    shorter = min(len(old), len(new))
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = _opcodes(old[head : len(old) - tail], new[head : len(new) - tail])
    found: list[Change] = [("equal", 0, head, 0, head)] if head else []
    found += [
        (tag, first + head, last + head, new_first + head, new_last + head)
        for tag, first, last, new_first, new_last in middle
    ]
    if tail:
        found.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return found


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """As difflib's, which takes a second for changes all over some thousand lines: where lines were only changed in
    place, as by a rename, it is not needed."""
    if len(old) == len(new):
        differs = list(map(ne, old, new))
        if set(compress(old, differs)).isdisjoint(compress(new, differs)):
            found: list[Change] = []
            place = 0
            for is_changed, run in groupby(differs):
                end = place + len(list(run))
                found.append(("replace" if is_changed else "equal", place, end, place, end))
                place = end
            return found
    return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _grouped(changes: list[Change]) -> Iterable[list[Change]]:
    """Changes with the unchanged lines around them, those that are near each other together."""
    group: list[Change] = []
    for place, (tag, start, end, new_start, new_end) in enumerate(changes):
        if tag != "equal":
            group.append((tag, start, end, new_start, new_end))
            continue
        length = end - start
        is_first, is_last = place == 0, place == len(changes) - 1
        if group and (is_last or length > 2 * DIFF_CONTEXT):
            shown = min(length, DIFF_CONTEXT)
            group.append((tag, start, start + shown, new_start, new_start + shown))
            yield group
            group = []
        if not is_last:
            shown = length if group and not is_first else min(length, DIFF_CONTEXT)
            group.append((tag, end - shown, end, new_end - shown, new_end))
    if any(change[0] != "equal" for change in group):
        yield group


def _span(start: int, end: int) -> str:
    """Lines of one side of a hunk, 1-based as in every diff."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _shown(line: str) -> str:
    bare = line.rstrip("\r\n")
    return f"{bare}\n" if bare != line else f"{bare}\n\\ No newline at end of file\n"
