"""What a needle means, and that nothing but its matches changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.editing import replacing
from serena_central.editing.replacing import Mode, replaced, replacements


def change(content: str, needle: str, repl: str, mode: Mode = "literal", *, several: bool = False) -> str:
    return replaced(content, replacements(content, needle, repl, mode, several=several))


def test_a_literal_needle_is_no_pattern() -> None:
    assert change("a.b axb", "a.b", "$!1") == "$!1 axb"


def test_a_pattern_spans_lines_and_is_anchored_to_them() -> None:
    assert change("def f():\n    return 1\n\nx = 2\n", r"^def f.*?return \d$", "pass", "regex") == "pass\n\nx = 2\n"


def test_groups_are_put_where_the_replacement_says() -> None:
    assert change("f(a, b)", r"f\((\w+), (\w+)\)", "f($!2, $!1)", "regex") == "f(b, a)"


def test_a_group_that_took_no_part_is_empty() -> None:
    assert change("ac", "a(b)?c", "<$!1>", "regex") == "<>"


def test_every_match_is_replaced_where_that_is_allowed() -> None:
    assert change("a a a", "a", "b", several=True) == "b b b"


def test_line_ends_of_the_file_are_found_and_kept() -> None:
    content = "one\r\ntwo\r\nthree\r\n"
    assert change(content, "one\ntwo", "1\n2") == "1\r\n2\r\nthree\r\n"
    assert change(content, "one\r\ntwo", "1\r\n2") == "1\r\n2\r\nthree\r\n"
    assert change(content, "two$", "2", "regex") == "one\r\n2\r\nthree\r\n"


def test_mixed_line_ends_stay_where_nothing_matched() -> None:
    assert change("a\r\nb\nc\r\nd\r\n", "b\nc", "x\ny") == "a\r\nx\r\ny\r\nd\r\n"


@pytest.mark.parametrize(
    ("content", "needle", "repl", "mode", "says"),
    [
        ("a", "", "b", "literal", "is empty"),
        ("a", "b", "c", "literal", "does not match"),
        ("a\na", "a", "b", "literal", r"2 times \(lines 0, 1\)"),
        ("a", "(", "b", "regex", "not a valid regular expression"),
        ("a", "x*", "b", "regex", "matches the empty text in line 0"),
        ("a", "(a)", "$!2", "regex", "refers to group 2"),
        ("if a:\nif b:\nend", r"if.*end", "x", "regex", "lines 0 to 2 is ambiguous"),
    ],
)
def test_what_is_not_clear_is_refused(content: str, needle: str, repl: str, mode: Mode, says: str) -> None:
    with pytest.raises(InvalidArguments, match=says):
        change(content, needle, repl, mode)


def test_a_catastrophic_pattern_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "SECONDS", 0.05)
    with pytest.raises(InvalidArguments, match="Simplify the pattern"):
        change("x" * 40 + "!" + "a" * 5000, r"(x+x+)+y|(a|aa)+$b", "z", "regex")


@given(
    st.lists(st.sampled_from(["a", "b", "needle", "\n", "\r\n", "é"]), max_size=30).map("".join),
    st.text("xyé", max_size=3),
)
def test_only_the_needle_changes(content: str, repl: str) -> None:
    expected = content.replace("needle", repl)
    if "needle" in content:
        assert change(content, "needle", repl, several=True) == expected
    else:
        with pytest.raises(InvalidArguments):
            change(content, "needle", repl, several=True)
