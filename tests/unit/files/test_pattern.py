"""What is told of a pattern before it is matched."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.files.pattern import Pattern


def pattern(source: str) -> Pattern:
    return Pattern(source, dot_matches_newline=False, deadline=time.monotonic() + 60)


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        (r"def get_\w+_url", "def get_"),
        (r"import (?:os|sys) as short", " as short"),
        (r"(a|b)+", ""),
        (r"colou?rs", "colo"),
        (r"ab+cd", "ab"),
        (r"x{2}long", "long"),
        (r"f\(x\)\.go", "f(x).go"),
        (r"one|another", ""),
        (r"a\|b", "a|b"),
        (r"(?i)name", ""),
        (r"\x41bc", ""),
        (r"[[:alpha:]]bc", ""),
        (r"[]a]bc", "bc"),
        (r"[^\]a]bcd", "bcd"),
        (r"f{name}", "f{name}"),
        (r"^class Größe", "class Gr"),
        (r"(x(?:y|z)*)end", "end"),
    ],
)
def test_what_each_match_must_contain_is_told_where_that_is_easy(source: str, needed: str) -> None:
    assert pattern(source).needed == needed


@given(st.text(alphabet="ab(|)[]^\\*+?{2}.$wd:", min_size=1, max_size=12), st.text(alphabet="ab(|)[]2{}", max_size=30))
def test_no_match_lacks_what_is_needed(source: str, text: str) -> None:
    try:
        compiled = pattern(source)
    except InvalidArguments:
        return
    for start, end in compiled.find_all(text):
        assert compiled.needed in text[start:end]


def test_patterns_of_python_mean_here_what_they_mean_there() -> None:
    for source in (r"a{,2}b", r"{x}", r"a{e}"):
        texts = ("aab", "{x}", "a{e}", "b")
        expected = [bool(re.search(source, text)) for text in texts]
        assert [pattern(source).search(text) is not None for text in texts] == expected
