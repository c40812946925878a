"""Any sequence of files that come and go leaves the table saying what a plain dictionary says."""

from hypothesis import given
from hypothesis import strategies as st

from serena_central.symbols.name_table import NameTable

NAMES = st.sets(st.text(max_size=3) | st.sampled_from(["\udc80", "é", "a\0b", "x" * 50]), max_size=6)
STEPS = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | NAMES), max_size=40)


@given(STEPS)
def test_it_says_what_a_dictionary_of_sets_says(steps: list[tuple[str, set[str] | None]]) -> None:
    table, files, ever = NameTable(), dict[str, set[str]](), set[str]()
    for path, names in steps:
        known = {name for others in files.values() for name in others}
        if path in files:
            table.drop(path, files.pop(path))
        elif names is not None:
            assert set(table.add(path, names)) == names - known
            files[path] = names
            ever |= names
        left = {name for others in files.values() for name in others}
        assert len(table) == len(left)
        assert {name for name in ever if name in table} == left
        for name in ever:
            assert sorted(table.files(name)) == sorted(one for one, others in files.items() if name in others)


def test_it_grows_by_a_bucket_at_a_time_and_loses_nothing() -> None:
    table = NameTable()
    wanted = {f"f{number}": {f"name{number}_{one}" for one in range(37)} | {"common"} for number in range(300)}
    for path, names in wanted.items():
        table.add(path, names)
    assert len(table) == 300 * 37 + 1
    assert sorted(table.files("common")) == sorted(wanted)
    for path, names in wanted.items():
        assert all(list(table.files(name)) == [path] for name in names - {"common"})
    assert "name300_0" not in table


def test_a_file_that_is_dropped_with_other_names_than_it_had_spoils_no_other() -> None:
    table = NameTable()
    table.add("a", {"one", "two"})
    table.add("b", {"one", "three"})
    table.drop("a", {"one", "never"})
    assert (list(table.files("one")), list(table.files("three"))) == (["b"], ["b"])


def test_a_file_of_very_many_names_is_added_like_many_files() -> None:
    """In a table that grew afterwards only this took hours."""
    table = NameTable()
    names = [f"name{number}" for number in range(1_000_000)]
    assert table.add("generated.py", names) == names
    assert list(table.files("name999999")) == ["generated.py"]
    table.drop("generated.py", names)
    assert len(table) == 0
