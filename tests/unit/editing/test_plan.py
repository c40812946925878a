"""Edits on texts, and how texts differ."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text
from serena_central.editing import plan
from serena_central.editing.plan import (
    LineCounts,
    TextEdit,
    apply_edits,
    difference,
    lines_of,
    unified_diff,
    with_newlines,
)

TEXTS = st.text(alphabet="ab\n\r 𝒳", max_size=40)


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> TextEdit:
    return TextEdit(Range(Position(*start), Position(*end)), text)


def test_edits_mean_the_text_as_it_was_whatever_their_order() -> None:
    text = Text("one\r\ntwo 𝒳\r\nthree")
    edits = [edit((2, 0), (2, 5), "3"), edit((0, 0), (0, 3), "1"), edit((1, 4), (1, 5), "!")]

    assert apply_edits(text, edits) == "1\r\ntwo !\r\n3"


def test_insertions_at_one_place_keep_their_order() -> None:
    assert apply_edits(Text("ab"), [edit((0, 1), (0, 1), "1"), edit((0, 1), (0, 1), "2")]) == "a12b"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(InvalidArguments, match="overlap at line 0"):
        apply_edits(Text("abcd"), [edit((0, 0), (0, 3), ""), edit((0, 2), (0, 4), "")])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_become_those_of_the_file(newline: str) -> None:
    assert with_newlines("a\nb\r\nc\rd", newline) == newline.join("abcd")


@given(TEXTS)
def test_lines_add_up_to_the_text(text: str) -> None:
    assert "".join(lines_of(text)) == text


@given(TEXTS, TEXTS)
def test_the_counts_are_those_of_the_diff(before: str, after: str) -> None:
    lines = unified_diff("f", before, after).splitlines()[2:]
    shown = LineCounts(
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
    )

    assert difference(before, after).counts == shown


@given(st.lists(st.sampled_from("abcdefg"), max_size=60), st.lists(st.sampled_from("abcdefg"), max_size=60))
def test_a_diff_covers_what_the_standard_library_s_does(old: list[str], new: list[str]) -> None:
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    ours = unified_diff("f", before, after).splitlines()
    theirs = list(difflib.unified_diff(old, new, "a/f", "b/f", lineterm=""))

    assert bool(ours) == bool(theirs)
    assert _played(ours, old) == new


def _played(diff: list[str], old: list[str]) -> list[str]:
    """What a diff makes of the old lines, by its hunks' own numbers."""
    result: list[str] = []
    reached = 0
    for line in diff[2:]:
        if line.startswith("@@"):
            first, _, count = line.split()[1].removeprefix("-").partition(",")
            start = int(first) - (0 if count == "0" else 1)
            result += old[reached:start]
            reached = start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert old[reached] == line[1:]
            reached += 1
            if line.startswith(" "):
                result.append(line[1:])
    return result + old[reached:]


def test_lines_that_were_changed_in_place_are_told_one_by_one() -> None:
    old = [f"line {number}\n" if number % 40 else "call(old)\n" for number in range(20_000)]
    new = [line.replace("old", "new") for line in old]
    told = difference("".join(old), "".join(new))
    assert told.counts == (500, 500)
    assert [hunk.line0 for hunk in told.hunks][:3] == [0, 37, 77]


ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", ""])
LINES = st.lists(st.tuples(st.sampled_from(["", "a", "b", "call(old)", "old old", "old = new"]), ENDS), max_size=60)


@given(LINES, st.sampled_from(["new", "new_name", "", "a", "b\n", "x\r\n"]), st.text("ab\n\r", max_size=3))
def test_looking_at_changed_lines_alone_finds_the_same(lines: list[tuple[str, str]], name: str, tail: str) -> None:
    before = "".join(line + end for line, end in lines)
    after = before.replace("old", name) + tail
    told = difference(before, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_changed_in_place", lambda *_: [])
        expected = difference(before, after)
        assert len(expected.stretches) == 1
    assert (told.counts, told.hunks) == (expected.counts, expected.hunks)
    assert unified_diff("f", before, after, known=told) == unified_diff("f", before, after, known=expected)


@given(st.text("ab\n", max_size=60), st.text("ab\n", max_size=60))
def test_two_texts_differ_in_the_same_lines_however_they_are_compared(before: str, after: str) -> None:
    told = difference(before, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_changed_in_place", lambda *_: [])
        assert told.hunks == difference(before, after).hunks


def test_lines_between_changes_are_not_looked_at() -> None:
    old = "".join(f"line {number}\n" if number % 100 else "call(old)\n" for number in range(1_000))
    told = difference(old, old.replace("old", "new"))
    assert len(told.stretches) == 10
    assert sum(len(stretch.old) for stretch in told.stretches) < 100


def test_a_missing_line_end_a_new_file_and_a_move_are_told() -> None:
    assert unified_diff("f.py", "a\r\nb", "a\r\nc") == (
        "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n"
        " a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    )
    assert unified_diff("f.py", None, "a\n") == "--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff("f.py", "a\n", None) == "--- a/f.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert unified_diff("f.py", "a\n", "a\n", new_path="g.py") == "--- a/f.py\n+++ b/g.py\n"
    assert unified_diff("f.py", "a\n", "a\n") == ""


@given(st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\r"]), max_size=30).map("".join), TEXTS, TEXTS)
def test_line_numbers_are_those_of_the_whole_texts(shared: str, before: str, after: str) -> None:
    old, new = shared + "\n" + before, shared + "\n" + after
    for hunk in difference(old, new).hunks:
        lines = lines_of(hunk.after.decode())
        assert lines_of(new)[hunk.line0 : hunk.line0 + len(lines)] == lines
