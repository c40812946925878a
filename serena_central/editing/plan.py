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
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        return list(StringIO(text))  # all end in \n: in an eighth of the time that a search takes
    ends = [match.end() for match in _LINE_END.finditer(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    starts = [0, *ends[:-1]]
    return [text[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


Change = tuple[str, int, int, int, int]
"""As difflib's opcodes: tag, lines of the old text, lines of the new one."""


class Hunk(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of lines with a few unchanged ones around it; `line0` is where `after` begins in the new text."""

    line0: int
    before: bytes
    after: bytes


class Difference(NamedTuple):
    """The lines around all differences, from the 0-based line `first0` of both texts on, and what differs in them."""

    first0: int
    old: list[str]
    new: list[str]
    changes: list[Change]

    @property
    def counts(self) -> LineCounts:
        """How many lines a diff adds and removes."""
        added = removed = 0
        for tag, first, last, new_first, new_last in self.changes:
            if tag != "equal":
                removed += last - first
                added += new_last - new_first
        return LineCounts(added, removed)

    @property
    def hunks(self) -> list[Hunk]:
        """Where the texts differ."""
        return [
            Hunk(
                self.first0 + group[0][3],
                "".join(self.old[group[0][1] : group[-1][2]]).encode(*SURVIVES),
                "".join(self.new[group[0][3] : group[-1][4]]).encode(*SURVIVES),
            )
            for group in _grouped(self.changes)
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
    """How far the texts are alike, by halving: comparing slices is far quicker than characters."""
    low, high = 0, most
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
    head, old_end, _ = changed_span(before, after)
    start = head
    for _ in range(DIFF_CONTEXT + 1):
        start = before.rfind("\n", 0, max(start - 1, 0)) + 1
    stop = old_end
    for _ in range(DIFF_CONTEXT + 1):
        stop = before.find("\n", stop) + 1 or len(before)
    old, new = lines_of(before[start:stop]), lines_of(after[start : len(after) - (len(before) - stop)])
    above = before[:start]
    first0 = above.count("\n") + above.count("\r") - above.count("\r\n")
    return Difference(first0, old, new, _changes(old, new))


def _diff_lines(difference: Difference) -> Iterable[str]:
    first0, old, new, changes = difference
    for group in _grouped(changes):
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
