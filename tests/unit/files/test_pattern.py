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
        (r"def get_\w+_url", "def get_ and _url"),
        (r"import (?:os|sys) as short", " as short and import "),
        (r"(a|b)+", ""),
        (r"colou?rs", "colo and rs"),
        (r"ab+cd", "bcd and ab"),
        (r"x{2}long", "xxlong"),
        (r"yx{2,}long", "xxlong and yxx"),
        (r"yx{2,}?long", "long and yxx and x"),
        (r"\d+\.\d+", "."),
        (r"yx{0}long", "long and y"),
        (r"y\dlong", "long and y"),
        (r"y[0-9]{2}long", "long and y"),
        (r"f\(x\)\.go", "f(x).go"),
        (r"one|another", "one or another"),
        (r"one|", ""),
        (r"one|\w+", ""),
        (r"(?:one|two)|three", ""),
        (r"a\|b", "a|b"),
        (r"(?i)name", ""),
        (r"\x41bc", ""),
        (r"[[:alpha:]]bc", ""),
        (r"[]a]bc", "bc"),
        (r"[^\]a]bcd", "bcd"),
        (r"f{name}", "f{name}"),
        (r"^class Größe", "class Gr and e"),
        (r"(x(?:y|z)*)end", "end"),
    ],
)
def test_what_each_match_must_contain_is_told_where_that_is_easy(source: str, needed: str) -> None:
    assert pattern(source).needed == tuple(tuple(one.split(" and ")) for one in needed.split(" or ") if one)


@given(st.text(alphabet="ab(|)[]^\\*+?{2}.$wd:", min_size=1, max_size=12), st.text(alphabet="ab(|)[]2{}", max_size=30))
def test_no_match_lacks_what_is_needed(source: str, text: str) -> None:
    try:
        compiled = pattern(source)
    except InvalidArguments:
        return
    for start, end in compiled.find_all(text):
        match = text[start:end]
        assert not compiled.needed or any(all(one in match for one in texts) for texts in compiled.needed)


def test_patterns_of_python_mean_here_what_they_mean_there() -> None:
    for source in (r"a{,2}b", r"{x}", r"a{e}"):
        texts = ("aab", "{x}", "a{e}", "b")
        expected = [bool(re.search(source, text)) for text in texts]
        assert [pattern(source).search(text) is not None for text in texts] == expected
