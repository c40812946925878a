"""Which edit wrote a line: a file's edits walked backwards."""

import random
import zlib

import msgspec
import pytest

from serena_central.editing.patch import FilePatch
from serena_central.editing.plan import difference
from serena_central.projects.editing.line_blame import edit_of_line
from serena_central.store.edit_log import LoggedEdit


def edited(number: int, before: str, after: str, undoes: str | None = None) -> LoggedEdit:
    patch = FilePatch(path="a.txt", hunks=difference(before, after).hunks)
    patches = zlib.compress(msgspec.msgpack.encode([patch]))
    return LoggedEdit(f"e-{number}", float(number), "t", "s", "c", "/r", ["a.txt"], undoes, "", patches)


def writers(text: str, edits: list[LoggedEdit]) -> list[str]:
    found = [edit_of_line(text, line0, "a.txt", edits) for line0 in range(text.count("\n"))]
    return [one.id if one else "" for one in found]


@pytest.mark.parametrize("seed", range(20))
def test_each_line_is_of_the_edit_that_wrote_it(seed: int) -> None:
    chance = random.Random(seed)
    lines = [f"first {number}\n" for number in range(60)]
    edits: list[LoggedEdit] = []
    for number in range(12):
        before = "".join(lines)
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(len(lines))
            new = [f"e-{number} {chance.random()}\n" for _ in range(chance.randrange(4))]
            lines[start : start + chance.randrange(4)] = new
        edits.insert(0, edited(number, before, "".join(lines)))
    text = "".join(lines)
    expected = [line.split()[0] if line.startswith("e-") else "" for line in lines]
    assert writers(text, edits) == expected
    assert writers(f"by hand\n{text}", edits) == ["", *expected]


def test_an_edit_that_was_undone_at_once_has_written_nothing() -> None:
    edits = [edited(3, "2\n", "1\n", undoes="e-2"), edited(2, "1\n", "2\n"), edited(1, "0\n", "1\n")]
    assert writers("1\n", edits) == ["e-1"]


def test_an_edit_whose_lines_were_changed_since_is_passed_over() -> None:
    edits = [edited(2, "1\nx\n", "2\nx\n"), edited(1, "0\nx\n", "1\nx\n")]
    assert writers("by hand\nx\n", edits) == ["", ""]


def test_without_patches_nothing_is_known() -> None:
    edit = edited(1, "0\n", "1\n")
    assert writers("1\n", [edit._replace(patches=None)]) == [""]
    assert writers("1\n", [edit._replace(patches=b"damaged")]) == [""]
