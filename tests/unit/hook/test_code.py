"""Patterns as agents write them, and the symbols that they speak of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.hook.code import Name, is_code, names_in, reason_of, symbols_in
from serena_central.hook.search import Search


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("class Foo", [Name("Foo", declared=True)]),
        (r"^\s*class\s+Foo\b", [Name("Foo", declared=True)]),
        (r"class Cart\(", [Name("Cart", declared=True)]),
        ("class .*Service", [Name("Service", part=True, declared=True)]),
        (r"interface\s+\w+Props", [Name("Props", part=True, declared=True)]),
        ("def test_", [Name("test_", part=True, declared=True)]),
        ("async def run", [Name("run", declared=True)]),
        ("pub async fn new", [Name("new", declared=True)]),
        (r"func (s \*Server) Start", [Name("Start", declared=True)]),
        (r"func \(.*\) Start\(", [Name("Start", declared=True)]),
        ("export default function App", [Name("App", declared=True)]),
        ("class (A|B)", [Name("A", declared=True), Name("B", declared=True)]),
        (r"(getUser|setUser)\(", [Name("getUser"), Name("setUser")]),
        ("UserService", [Name("UserService")]),
        (r"\bparse_line\b", [Name("parse_line")]),
        ("MAX_SIZE", [Name("MAX_SIZE")]),
        ("User.save", [Name("User/save")]),
        ("Config::load", [Name("Config/load")]),
        (r"client\.send\(", [Name("send")]),
        ("self.total", [Name("total")]),
        ("total(", [Name("total")]),
        *(
            (plain, [])
            for plain in ("error", "TODO", "README", "module not found", "type of", "example.com", "a.b.json")
        ),
        *((plain, []) for plain in ("connection refused", "1.2.3", "", "  ", "(", "[", "import os", "utils.py", "|")),
    ],
)
def test_the_symbols_of_a_pattern_are_read_off_it(pattern: str, names: list[Name]) -> None:
    assert names_in(pattern) == names


@pytest.mark.parametrize(
    ("search", "is_for_code"),
    [
        (Search("anything", globs=("*.py",)), True),
        (Search("anything", globs=("*.{md,tsx}",)), True),
        (Search("anything", paths=("a/src/b",)), True),
        (Search("anything", paths=("app/Cart.java",)), True),
        (Search("import os"), True),
        (Search("class Cart"), True),
        (Search("*.py", by_name=True), True),
        (Search("class Cart", globs=("*.md",)), False),
        (Search("anything", paths=("a/src/b",), globs=("*.json",)), False),
        (Search("anything", paths=("srcs/liberty",)), False),
        (Search("UserService", by_name=True), False),
        (Search("anything"), False),
    ],
)
def test_a_search_is_for_code_by_its_files_its_folder_or_its_pattern(search: Search, is_for_code: bool) -> None:
    assert (reason_of(search) is not None) is is_for_code


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("class Foo", [Name("Foo", part=True, declared=True)]),
        (r"class Foo\b", [Name("Foo", declared=True)]),
        (r"class Foo\(", [Name("Foo", declared=True)]),
        ("class Foo:", [Name("Foo", declared=True)]),
        (r"def foo\s*\(", [Name("foo", declared=True)]),
        (r"\bfoo_bar\b", [Name("foo_bar")]),
        ("foo_bar", [Name("foo_bar", part=True)]),
        (r"type Foo struct", [Name("Foo", declared=True)]),
        (r"\bUser\.save\(", [Name("User/save")]),
        ("User.save", [Name("User/save", part=True), Name("save", part=True)]),
        (r"client\.send\(", [Name("send")]),
        (r"class (A|B)\b", [Name("A", declared=True), Name("B", declared=True)]),
        (r"\b(?:getUser|set_user)\b", [Name("getUser"), Name("set_user")]),
        *(
            (plain, [])
            for plain in ("class Foo|and more", "(?i)class Foo", "class (A|B|C|D)", "Foo(a|(b|c))", "", "error")
        ),
    ],
)
def test_the_symbols_that_stand_in_for_a_pattern_leave_out_nothing_that_it_finds(
    pattern: str, names: list[Name]
) -> None:
    assert symbols_in(pattern) == names


def test_folders_of_sources_can_be_named() -> None:
    assert reason_of(Search("anything", paths=("app/models",)), ["app"])
    assert reason_of(Search("anything", paths=("src/models",)), ["app"]) is None


def test_nothing_is_said_of_what_later_versions_may_read_otherwise() -> None:
    assert [name.path for name in symbols_in("class Cart[[]")] == ["Cart"]


@given(st.text(max_size=80) | st.text(alphabet="()[]{}|\\.*+?^$ abc_:<", max_size=1200))
def test_no_pattern_is_too_strange(pattern: str) -> None:
    assert all(name.path for name in [*names_in(pattern), *symbols_in(pattern)])
    assert is_code(pattern) in (True, False)
