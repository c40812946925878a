"""Name-path patterns mean exactly what the tools' reference says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.symbols.namepath import PATTERN_LIMIT, Part, parse_pattern

NAMES = st.text(alphabet="abc_<>() .é", min_size=1, max_size=4).filter(lambda name: name == name.strip())


def path(text: str) -> list[Part]:
    return list(parse_pattern(text).parts)


@pytest.mark.parametrize(
    ("pattern", "symbol", "fits"),
    [
        ("b", "b", True),
        ("b", "a/b", True),
        ("a/b", "a/b", True),
        ("a/b", "x/a/b", True),
        ("a/b", "a/x/b", False),
        ("a", "a/b", False),
        ("/b", "b", True),
        ("/b", "a/b", False),
        ("/a/b", "a/b", True),
        ("/a/b", "x/a/b", False),
        ("a/b/", "a/b", True),
        ("b[1]", "a/b[1]", True),
        ("b[1]", "a/b[0]", False),
        ("b[0]", "a/b", False),
        ("b", "a/b[1]", True),
        ("a[1]/b", "a[1]/b", True),
        ("a[0]/b", "a[1]/b", False),
        ("B", "b", False),
    ],
)
def test_patterns_fit_as_the_reference_says(pattern: str, symbol: str, fits: bool) -> None:
    assert parse_pattern(pattern).fits(path(symbol)) is fits


@pytest.mark.parametrize(
    ("pattern", "symbol", "fits"),
    [
        ("get", "A/get_name", True),
        ("A/get", "A/get_name", True),
        ("A/name", "A/get_name", True),
        ("/get", "get_name", True),
        ("/get", "A/get_name", False),
        ("et/na", "Set/get_name", False),
        ("get[1]", "A/get_name[1]", True),
        ("get[1]", "A/get_name", False),
    ],
)
def test_a_substring_applies_to_the_last_part_only(pattern: str, symbol: str, fits: bool) -> None:
    assert parse_pattern(pattern, substring=True).fits(path(symbol)) is fits


@pytest.mark.parametrize("text", ["", "/", "//", "a//b", " ", "x" * (PATTERN_LIMIT + 1)])
def test_what_is_no_name_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        parse_pattern(text)


@given(st.lists(NAMES, min_size=1, max_size=4), st.integers(1, 4))
def test_every_symbol_is_found_by_each_end_of_its_path(names: list[str], kept: int) -> None:
    own = [Part(name) for name in names]
    assert parse_pattern("/".join(names[-kept:])).fits(own)
    assert parse_pattern("/" + "/".join(names)).fits(own)


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_a_clear_refusal(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except InvalidArguments:
        return
    assert pattern.parts
    assert all(part.name for part in pattern.parts)


@pytest.mark.parametrize(
    ("container", "asked", "fits"),
    [
        ("impl<'de, R: Read<'de>> Deserializer<R>", "Deserializer", True),
        ("impl<'a, 'de, R: Read<'de>> Iterator for &'a mut Deserializer<R>", "Deserializer", True),
        ("impl<'a, R> Iterator for Deserializer<R>", "Iterator", False),
        ("impl inner::Deep", "Deep", True),
        ("impl<T> From<Vec<T>> for Bag<T> where T: Clone", "Bag", True),
        ("implementation", "implementation", True),
        ("implements", "ements", False),
    ],
)
def test_an_implementation_counts_as_its_type(container: str, asked: str, fits: bool) -> None:
    assert parse_pattern(f"{asked}/run").fits([Part(container), Part("run")]) is fits
    assert parse_pattern(f"/{asked}/run").fits([Part(container), Part("run")]) is fits
