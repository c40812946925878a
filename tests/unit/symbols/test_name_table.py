"""Any sequence of files that come and go leaves the table saying what a plain dictionary says."""

from hypothesis import given
from hypothesis import strategies as st

from serena_central.symbols.name_table import MANY, NameTable

NAMES = st.dictionaries(
    st.text(max_size=3) | st.sampled_from(["\udc80", "é", "a\0b", "x" * 50]),
    st.sampled_from([0, 1, 2, MANY - 1, MANY, MANY + 1, 200_000]),
    max_size=6,
)
STEPS = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | NAMES), max_size=40)


@given(STEPS)
def test_it_says_what_a_dictionary_of_counts_says(steps: list[tuple[str, dict[str, int] | None]]) -> None:
    table, files, ever = NameTable(), dict[str, dict[str, int]](), set[str]()
    for path, names in steps:
        before = files.pop(path, None)
        known = {name for others in files.values() for name in others}
        if names is None:
            if before is not None:
                table.drop(path, before)
        else:
            changed = {name for name, count in names.items() if before is None or before.get(name) != count}
            new = table.add(path, names) if before is None else table.replace(path, before, names)
            assert set(new) == changed - known
            files[path] = names
            ever |= names.keys()
        left = {name for others in files.values() for name in others}
        assert len(table) == len(left)
        assert {name for name in ever if name in table} == left
        for name in ever:
            counts = sorted((one, min(others[name], MANY)) for one, others in files.items() if name in others)
            assert sorted(table.counts(name).items()) == counts
            assert sorted(table.files(name)) == [one for one, _ in counts]


def test_it_grows_by_a_bucket_at_a_time_and_loses_nothing() -> None:
    table = NameTable()
    wanted = {
        f"f{number}": dict.fromkeys([*(f"name{number}_{one}" for one in range(37)), "common"], 1)
        for number in range(300)
    }
    for path, names in wanted.items():
        table.add(path, names)
    assert len(table) == 300 * 37 + 1
    assert sorted(table.files("common")) == sorted(wanted)
    for path, names in wanted.items():
        assert all(list(table.files(name)) == [path] for name in names.keys() - {"common"})
    assert "name300_0" not in table


def test_a_file_that_is_dropped_with_other_names_than_it_had_spoils_no_other() -> None:
    table = NameTable()
    table.add("a", {"one": 1, "two": 1})
    table.add("b", {"one": 1, "three": 2})
    table.drop("a", {"one": 1, "never": 1})
    assert (table.counts("one"), table.counts("three")) == ({"b": 1}, {"b": 2})


def test_a_file_of_very_many_names_is_added_like_many_files() -> None:
    """In a table that grew afterwards only this took hours."""
    table = NameTable()
    names = {f"name{number}": 1 for number in range(500_000)}
    assert table.add("generated.py", names) == list(names)
    assert list(table.files("name299999")) == ["generated.py"]
    table.drop("generated.py", names)
    assert len(table) == 0
