"""A change is reverted although the file was edited since, or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from serena_central.clients.reverting import MOST_LINES, reverted

BEFORE = b"a\nb\nc\nd\ne\n"
AFTER = b"a\nb\nnew\nc\nd\ne\n"


def test_edits_elsewhere_stay() -> None:
    assert reverted(BEFORE, AFTER, b"A\nb\nnew\nc\nd\ne\nf\n") == b"A\nb\nc\nd\ne\nf\n"
    assert reverted(BEFORE, AFTER, AFTER) == BEFORE


def test_an_edit_of_the_changed_lines_or_beside_them_is_left_to_others() -> None:
    assert reverted(BEFORE, AFTER, AFTER.replace(b"new", b"newer")) is None
    assert reverted(BEFORE, AFTER, AFTER.replace(b"new\n", b"new\nmore\n")) is None


def test_more_than_can_be_compared_quickly_is_left_to_others() -> None:
    lines = b"".join(b"%d\n" % place for place in range(MOST_LINES + 2))
    assert reverted(lines, b"x\n" + lines, b"x\n" + lines.replace(b"0", b"o")) is None


@given(st.text("ab\n"), st.text("ab\n"))
def test_without_an_edit_the_text_is_what_it_was(before: str, after: str) -> None:
    assert reverted(before.encode(), after.encode(), after.encode()) == before.encode()
