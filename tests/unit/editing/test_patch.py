"""Patches come back out exactly, or say why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.editing.patch import MovedOn, lines_made, reverted
from serena_central.editing.plan import Hunk, difference

TEXTS = st.lists(st.sampled_from(["a\n", "b\r\n", "c\r", "d", "\udcff\n", "𝒳\n"]), max_size=30).map("".join)


@given(TEXTS, TEXTS)
def test_a_patch_taken_back_gives_the_old_text(before: str, after: str) -> None:
    assert reverted(after, difference(before, after).hunks) == before


@given(TEXTS.filter(lambda text: text.endswith("\n")))
def test_it_is_found_where_other_changes_have_moved_it(above: str) -> None:
    before = "one\ntwo\nthree\nfour\nfive\n"
    after = before.replace("three", "3")

    assert reverted(above + after, difference(before, after).hunks) == above + before


def test_it_is_refused_where_its_lines_changed_or_stand_twice() -> None:
    before = "one\ntwo\nthree\nfour\nfive\n"
    after = before.replace("three", "3")
    hunks = difference(before, after).hunks

    with pytest.raises(MovedOn, match="changed since"):
        reverted(after.replace("3", "III"), hunks)
    with pytest.raises(MovedOn, match="occurs several times"):
        reverted("new\n" + after + after, hunks)
    with pytest.raises(MovedOn, match="emptied"):
        reverted("something\n", difference("old\n", "").hunks)


def test_a_refusal_names_a_line_that_says_something() -> None:
    hunks = difference("old()\n\n\n\nrest()\n", "new()\n\n\n\nrest()\n").hunks
    with pytest.raises(MovedOn, match=r"the lines around 'new\(\)' changed since"):
        reverted("newer()\n\n\n\nrest()\n", hunks)


def test_lines_that_an_edit_made_are_found_where_they_stand_now() -> None:
    hunks = [Hunk(1, b"a\nold\nb\n", b"a\nnew\nb\n"), Hunk(5, b"c\ngone\nd\n", b"c\nd\n"), Hunk(9, b"x\n", b"y\n")]
    text = "added above\n\na\nnew\nb\n\nc\nd\n"
    assert lines_made(text, hunks) == [3, 7]
    large = Hunk(0, b"", b"".join(b"%d\n" % number for number in range(1000)))
    assert lines_made(large.after.decode(), [large]) == list(range(1000))
