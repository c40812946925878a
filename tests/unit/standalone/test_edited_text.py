"""An edit of a person's file leaves the bytes that it is not about."""

import pytest

from serena_central.standalone.edited_text import edited, exact_text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"new\n"),
        (b"a\nb\n", b"a\nb\nnew\n"),
        (b"a\r\nb\r\n", b"a\r\nb\r\nnew\r\n"),
        (b"a\r\nb\n", b"a\r\nb\nnew\n"),
        (b"a\rb", b"a\rbnew\n"),
        (b"\xef\xbb\xbf", b"\xef\xbb\xbfnew\n"),
        (b"\xef\xbb\xbfa\r\n\xef\xbb\xbf", b"\xef\xbb\xbfa\r\n\xef\xbb\xbfnew\r\n"),
    ],
)
def test_what_is_added_comes_after_the_same_bytes(before: bytes, after: bytes) -> None:
    assert edited(exact_text(before), lambda text: f"{text}new\n").encode() == after


def test_an_edit_that_changes_nothing_says_so() -> None:
    assert edited("a\r\n", lambda _text: None) is None
