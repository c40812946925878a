"""Positions survive every notation: emoji, CRLF, BOM, combining marks, columns past the end."""

from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.text import LONGEST_KEPT, Encoding, Position, Range, Text, whole_word

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
TEXTS = st.text(alphabet=st.sampled_from("ab é\u0301🙂\ufeff\r\n\u2028\t"), max_size=40)


def wire_length(text: str, encoding: Encoding) -> int:
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = encoding if encoding == "utf-8" else encoding + "-le"
    return len(text.encode(codec)) // width


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_every_position_survives_the_way_to_lsp_and_back(content: str, encoding: Encoding) -> None:
    text = Text(content)
    for line0 in range(text.line_count):
        for column in range(len(text.line(line0)) + 1):
            line, character = text.to_lsp(Position(line0, column), encoding)
            assert character == wire_length(text.line(line0)[:column], encoding)
            assert text.from_lsp(line, character, encoding) == Position(line0, column)


@given(TEXTS)
def test_offsets_and_positions_are_inverse_outside_line_breaks(content: str) -> None:
    text = Text(content)
    for offset in range(len(content) + 1):
        position = text.position(offset)
        assert text.offset(position) <= offset
        assert text.position(text.offset(position)) == position


@given(TEXTS)
def test_lines_with_their_breaks_are_the_text(content: str) -> None:
    text = Text(content)
    assert text.lines(0, text.line_count - 1) == content
    assert text.line_count == content.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


@pytest.mark.parametrize(
    ("encoding", "character"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)], ids=["utf-8", "utf-16", "utf-32"]
)
def test_a_column_after_an_emoji_counts_in_the_encoding_s_units(encoding: Encoding, character: int) -> None:
    text = Text("🙂x\n")
    assert text.to_lsp(Position(0, 1), encoding) == (0, character)
    assert text.from_lsp(0, character, encoding) == Position(0, 1)


def test_a_column_inside_a_character_means_its_start() -> None:
    assert Text("a🙂b").from_lsp(0, 2, "utf-16") == Position(0, 1)
    assert Text("aéb").from_lsp(0, 2, "utf-8") == Position(0, 1)


def test_past_the_end_means_the_end() -> None:
    text = Text("ab\r\ncd")
    assert text.from_lsp(0, 99, "utf-16") == Position(0, 2)
    assert text.from_lsp(99, 0, "utf-16") == Position(1, 2)
    assert text.offset(Position(99, 0)) == 6
    assert text.line(7) == ""


def test_a_slice_keeps_line_breaks_and_the_byte_order_mark_is_a_character() -> None:
    text = Text("\ufeffclass A:\r\n    pass\r\n")
    assert text.slice(Range(Position(0, 1), Position(1, 8))) == "class A:\r\n    pass"
    assert text.position(text.content.index("pass")) == Position(1, 4)


def test_unicode_line_separators_do_not_end_a_line() -> None:
    assert Text("a\u2028b\x0bc").line_count == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_line_of_a_minified_file_is_measured_once(encoding: Encoding) -> None:
    text = Text("aé🙂" * 100_000 + "\nb")
    for column in range(0, 300_000, 60):  # each by itself would cost its column: half an hour together
        there = Position(0, column)
        assert text.from_lsp(*text.to_lsp(there, encoding), encoding) == there
    assert text.from_lsp(1, 1, encoding) == Position(1, 1)
    if encoding != "utf-32":
        wide = text._wide_in(0, encoding)  # the text keeps it as long as it lives
        assert sum(map(getsizeof, wide)) <= 9 * len(wide.columns)


def test_texts_of_equal_content_share_what_is_known_of_their_lines() -> None:
    first, second = (Text("".join(("one\r\n", "zwei\n", "three"))) for _ in range(2))
    assert first._starts is second._starts
    assert [second.line(line0) for line0 in range(second.line_count)] == ["one", "zwei", "three"]
    long = "x" * (LONGEST_KEPT + 1)
    assert Text(long)._starts is not Text(long)._starts


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("load", "load reload load_ load(load)", [0, 18, 23]),
        ("$load", "$load $$load a$load $loads", [0]),
        ("load", "$load load$", []),
        ("a.b", "a.b axb a.bc", [0]),
    ],
)
def test_a_whole_word_is_no_part_of_a_longer_one(name: str, content: str, columns: list[int]) -> None:
    assert [match.start() for match in whole_word(name).finditer(content)] == columns
