"""Name-path patterns mean exactly what the tools' reference says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.symbols.namepath import PATTERN_LIMIT, PathPart, parse_pattern

NAMES = st.text(alphabet="abc_<>() .é", min_size=1, max_size=4).filter(lambda name: name == name.strip())


def path(text: str) -> list[PathPart]:
    return list(parse_pattern(text).parts)


def test_a_pattern_stands_for_as_many_names_as_it_has_ends_however_many_parts_it_has() -> None:
    """Each with a slash before it, or none."""
    ends = {"open", "Till/open", "Shop/Till/open"}
    assert parse_pattern("Shop/Till/open").readings[0].names == ends | {f"/{end}" for end in ends}
    assert len(parse_pattern("a/" * 12 + "open[2]").readings[0].names) == 2 * 2 * 13


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


@pytest.mark.parametrize("text", ["", "/", "//", " ", "x" * (PATTERN_LIMIT + 1)])
def test_what_is_no_name_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        parse_pattern(text)


@given(st.lists(NAMES, min_size=1, max_size=4), st.integers(1, 4))
def test_every_symbol_is_found_by_each_end_of_its_path(names: list[str], kept: int) -> None:
    own = [PathPart(name) for name in names]
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
    assert parse_pattern(f"{asked}/run").fits([PathPart(container), PathPart("run")]) is fits
    assert parse_pattern(f"/{asked}/run").fits([PathPart(container), PathPart("run")]) is fits


@pytest.mark.parametrize(
    ("written", "symbol", "fits"),
    [
        ("A.b", "A/b", True),
        ("A.b", "A.b", True),
        ("n::A<T>::b(int, X<Y>)", "n/A/b", True),
        ("A/b", "A<int>/b", True),
        ("(*A).b", "A/b", True),
        ("A[T].b", "A/b", True),
        ("A.b[1]", "A/b[1]", True),
        ("A.b[1]", "A/b[0]", False),
        ("/A.b", "A/b", True),
        ("/A.b", "x/A/b", False),
        ("A::operator()", "A/operator()", True),
        ("operator<<", "operator<<", True),
        ("<A as B>::c", "impl<T> B for A<T>/c", True),
        ("A::c::<T>", "impl A/c", True),
        ("A.b.c", "A/c", False),
        ("a..b", "a/b", False),
        ("A.", "A", False),
    ],
)
def test_names_are_found_as_people_write_them(written: str, symbol: str, fits: bool) -> None:
    assert parse_pattern(written).fits([PathPart(*part) for part in _parts(symbol)]) is fits


def _parts(symbol: str) -> list[tuple[str, int | None]]:
    return [
        (name, int(index[:-1]) if index else None)
        for name, _, index in (
            part.partition("[") if part.endswith("]") else (part, "", "") for part in symbol.split("/")
        )
    ]


@pytest.mark.parametrize(
    ("written", "file", "fits"),
    [
        ("pack.mod.A.b", "src/pack/mod.py", True),
        ("pack.A.b", "src/pack/__init__.py", True),
        ("pack.A.b", "src/pack/mod.py", True),
        ("my_crate::lazy::A::b", "crates/my-crate/src/lazy.rs", True),
        ("crate::A::b", "src/lib.rs", True),
        ("other.A.b", "src/pack/mod.py", False),
        ("pack.other.A.b", "src/pack/mod.py", False),
        ("pack/A/b", "src/pack/mod.py", False),
    ],
)
def test_what_leads_a_written_name_may_name_the_file(written: str, file: str, fits: bool) -> None:
    assert parse_pattern(written).fits([PathPart("A"), PathPart("b")], file) is fits
