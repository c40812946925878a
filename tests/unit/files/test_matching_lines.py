"""What is found in a text of many lines is what each line by itself would tell."""

import re
import time
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.files import matching_lines
from serena_central.files.matching_lines import first_matches
from serena_central.files.pattern import Pattern

LINES = st.lists(st.text(alphabet="ab (é\udcff", max_size=6), max_size=8)

PIECES = r"""
a b ab aa bb é \( \s \s+ [^a] [^b]* . a* b? \w+ \b ^ $ | \n \n?$ \A \Z (?i:A) (?:a|b) (?>a+) (?=b) (?!b) (?<=a) (?<!a)
"""
SOURCES = st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=5).map("".join)


DIGITS = st.lists(st.text(alphabet="01-a٢é\udcff", max_size=9), max_size=8)
SOURCES_OF_DIGITS = st.lists(st.sampled_from([r"\d", r"[0-9]", r"\d{2}", "0", "-", "a"]), min_size=1, max_size=6).map(
    "".join
)


def pattern(source: str) -> Pattern:
    return Pattern(source, dot_matches_newline=False, deadline=time.monotonic() + 60)


def check(lines: list[str], source: str, piece: int = matching_lines.PIECE_BYTES) -> None:
    try:
        asked = pattern(source)
    except InvalidArguments:
        return
    expected: list[int] = []
    begin = 0
    for line in lines:
        if (found := asked.search(line)) is not None:
            expected.append(begin + len(line[: found[0]].encode("utf-8", "surrogateescape")))
        begin += len(line.encode("utf-8", "surrogateescape")) + 1
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    with patch.object(matching_lines, "PIECE_BYTES", piece):
        assert list(first_matches(data, asked)) == expected


@given(LINES, SOURCES, st.integers(0, 20))
def test_a_line_is_found_if_it_matches_alone_and_where_it_does(lines: list[str], source: str, piece: int) -> None:
    check(lines, source, piece)


@given(DIGITS, SOURCES_OF_DIGITS)
def test_digits_of_any_script_are_found_where_the_first_of_them_match(lines: list[str], source: str) -> None:
    check(lines, source)


@pytest.mark.parametrize("line", ["01-0-01-01", "-01", "1-01", "٢1-01 01-01", "1-0", "x-00 10-01"])
def test_a_needle_without_a_match_hides_no_later_one(line: str) -> None:
    for source in (r"\d\d-\d\d", r"[0-9]{2}-[0-9]{2}", r"\d-\d", r"-\d\d"):
        check([line, "", line + line], source)


def test_what_a_pattern_needs_may_stand_in_most_lines() -> None:
    data = b"a = 1\nb = x\n" * 2000
    assert list(first_matches(data, pattern(r"\w = \d"))) == [12 * number for number in range(2000)]
    assert len(list(first_matches(data, pattern(r" = 1|b = \w")))) == 4000


@pytest.mark.parametrize(
    "source",
    [
        "x" * 10_000,
        "a{100}" * 1_400,
        "a{100}b" * 1_200,
        "(?i)" + "=" * 9_990,
        "(?i)" + "={100}" * 1_600,
        r"\d{100}" * 1_000,
    ],
)
def test_what_a_long_pattern_needs_is_told_in_time(source: str) -> None:
    assert list(first_matches(b"aaa\n===\n", pattern(source))) == []


@pytest.mark.parametrize("text", ["x" * 255, "x" * 256, "x" * 257, "a word " * 60, "(" * 1_000])
def test_a_long_text_is_found(text: str) -> None:
    data = f"{text[1:]}\n{text}\n {text}{text}\n".encode()
    assert list(first_matches(data, pattern(re.escape(text)))) == [len(text), 2 * len(text) + 2]
