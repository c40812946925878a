"""The index answers by name and place, and forgets what it is told to forget."""

import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.text import Position, Range
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols import index as index_module
from serena_central.symbols.index import Entry, SymbolIndex, names_in, packed
from serena_central.symbols.namepath import Reading, parse_pattern
from serena_central.symbols.similar_names import nearest
from serena_central.symbols.symbol import FileSymbols, flatten

STAMP = Stamp(1, 2, 3, 4)


def symbol(name: str, first: int, last: int, *children: DocumentSymbol, kind: int = SymbolKind.CLASS) -> DocumentSymbol:
    span = Range(Position(first, 0), Position(last, 9))
    return DocumentSymbol(name, kind, span, Range(Position(first, 6), Position(first, 7)), "", list(children))


FILE = flatten(
    [
        symbol("Shop", 0, 9, symbol("sell", 1, 3), symbol("sell", 4, 6), symbol("Till", 7, 8, symbol("open", 8, 8))),
        symbol("open", 10, 12),
    ]
)


def filled(**files: FileSymbols) -> SymbolIndex:
    index = SymbolIndex()
    for path, file in files.items():
        index.put(path, file, stamp=STAMP, indexed_at_ns=1, source="fake 1")
    return index


def found(index: SymbolIndex, pattern: str, within: str | None = None, *, substring: bool = False) -> list[str]:
    return [f"{hit.path}:{hit.name_path}" for hit in index.find(parse_pattern(pattern, substring=substring), within)]


def test_a_tree_becomes_a_flat_list_with_name_paths_and_overloads() -> None:
    assert [FILE.name_path(place) for place in range(len(FILE.symbols))] == [
        "Shop", "Shop/sell[0]", "Shop/sell[1]", "Shop/Till", "Shop/Till/open", "open",
    ]  # fmt: skip
    assert FILE.place_of("Shop/sell[1]") == 2
    assert FILE.place_of("sell") is None
    assert list(FILE.children(0)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("line0", "name_path"), [(0, "Shop"), (2, "Shop/sell[0]"), (8, "Shop/Till/open"), (11, "open"), (13, None)]
)
def test_the_innermost_symbol_encloses_a_position(line0: int, name_path: str | None) -> None:
    place = FILE.enclosing(Position(line0, 1))
    assert (None if place is None else FILE.name_path(place)) == name_path


def test_symbols_are_found_across_files_within_a_folder_and_in_one_file() -> None:
    index = filled(**{"a/x.py": FILE, "a/y.py": FILE, "ab/z.py": FILE})
    assert found(index, "Till/open") == ["a/x.py:Shop/Till/open", "a/y.py:Shop/Till/open", "ab/z.py:Shop/Till/open"]
    assert found(index, "/open", "a") == ["a/x.py:open", "a/y.py:open"]
    assert found(index, "sell[1]", "ab/z.py") == ["ab/z.py:Shop/sell[1]"]
    assert found(index, "ho", substring=True, within="a/x.py") == ["a/x.py:Shop"]
    assert found(index, "sell", "b") == []
    assert found(index, "nothing") == []


def test_a_container_that_is_called_just_so_comes_before_others_of_its_type() -> None:
    names = ("impl Display for Version", "impl Debug for Version", "Square<int>", "Square<long>", "Square")
    rows = [
        symbol(name, 10 * at, 10 * at + 5, symbol("show", 10 * at + 1, 10 * at + 2)) for at, name in enumerate(names)
    ]
    index = filled(**{"src/v.rs": flatten(rows)})
    for name in names[:4]:
        assert found(index, f"{name}/show") == [f"src/v.rs:{name}/show"]
    assert found(index, "impl Clone for Version/show") == [f"src/v.rs:{name}/show" for name in names[:2]]
    assert len(found(index, "Version/show")) == 2
    assert len(found(index, "Square/show")) == 3


WRITTEN = st.text("ab/ ", min_size=1, max_size=6).filter(lambda name: name.strip("/ ") == name.strip("/") != "")


@given(st.lists(st.tuples(WRITTEN, st.lists(WRITTEN, max_size=3, unique=True)), min_size=1, max_size=4))
def test_every_symbol_is_found_by_the_name_path_that_answers_show(tree: list[tuple[str, list[str]]]) -> None:
    """Also one called `/health`, `src/` or `see http://host`."""
    file = flatten([symbol(name, 0, 9, *(symbol(one, 1, 2) for one in within)) for name, within in tree])
    index = filled(**{"x.md": file})
    for place in range(len(file.symbols)):
        name_path = file.name_path(place)
        for pattern in (name_path, f"/{name_path}"):
            hits = index.find(parse_pattern(pattern))
            assert place in [hit.place for hit in hits], pattern
            assert len(hits) == len(list(hits)), "as many as are counted"


def test_a_dropped_file_leaves_nothing_behind() -> None:
    index = filled(**{"x.py": FILE, "y.py": FILE})
    index.drop("x.py")
    index.drop("never.py")
    assert found(index, "Shop") == ["y.py:Shop"]
    index.drop("y.py")
    assert list(index.names()) == []
    assert len(index) == 0


def test_a_name_is_found_in_the_files_that_are_left_however_many_had_it() -> None:
    index = filled(**{"x.py": FILE, "y.py": FILE, "z.py": FILE})
    for gone, left in (("y.py", ["x.py", "z.py"]), ("x.py", ["z.py"]), ("z.py", [])):
        index.drop(gone)
        assert found(index, "Till") == [f"{path}:Shop/Till" for path in left]
        assert ("Till" in index.names()) == bool(left)


def test_a_file_that_is_put_again_forgets_its_old_names() -> None:
    index = filled(**{"x.py": FILE})
    index.put("x.py", flatten([symbol("New", 0, 1)]), stamp=STAMP, indexed_at_ns=2, source="fake 1")
    assert found(index, "Shop") == []
    assert found(index, "New") == ["x.py:New"]


def test_more_symbols_than_stay_decoded_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "DECODED_SYMBOLS", 3 * len(FILE.symbols))
    index = filled(**{f"f{number}.py": FILE for number in range(10)})
    assert len(found(index, "/Shop")) == 10
    assert len(found(index, "/Shop")) == 10


def test_small_files_that_stay_decoded_take_no_more_memory_than_large_ones() -> None:
    small = flatten([symbol("Shop", 0, 9)])
    index = filled(**{f"x{number}": small for number in range(12_000)})
    tracemalloc.start()
    try:
        for path in list(index.paths()):
            assert index.file(path).symbols[0].name == "Shop"
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 12_000_000


def test_a_find_in_many_files_pushes_out_none_that_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "DECODED_SYMBOLS", 3 * len(FILE.symbols))
    monkeypatch.setattr(index_module, "FILES_KEPT", 5)
    index = filled(**{f"f{number}.py": FILE for number in range(10)})
    known = index.file("f0.py")
    assert len(index.find(parse_pattern("/Shop"))) == 10
    assert index.file("f0.py") is known


def test_symbols_that_many_files_have_are_counted_without_a_look_into_the_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = filled(**{f"f{number}.py": FILE for number in range(30)})
    decoded: list[str] = []
    decode = SymbolIndex.decoded

    def noted(self: SymbolIndex, path: str, entry: Entry, *, keep: bool = True) -> FileSymbols:
        decoded.append(path)
        return decode(self, path, entry, keep=keep)

    monkeypatch.setattr(SymbolIndex, "decoded", noted)
    for pattern, substring, each in (("sell", False, 2), ("o", True, 3)):
        hits = index.find(parse_pattern(pattern, substring=substring))
        assert (len(hits), hits.per_file["f3.py"]) == (30 * each, each)
        assert len(hits.in_files(lambda path: path != "f7.py")) == 29 * each
        assert decoded == []
        assert hits[each].path == "f1.py"
        assert {*decoded} == {"f1.py"}
        decoded.clear()


@given(
    st.lists(st.lists(st.sampled_from(["b", "ab", "a/b", "b/c", "b[1]", "ns::b"]), max_size=80), max_size=4),
    st.booleans(),
    st.sampled_from(["b", "a", "b[1]", "/b", "a/b", "ns"]),
    st.booleans(),
)
def test_as_many_symbols_are_counted_as_there_are(
    files: list[list[str]], is_restored: bool, pattern: str, substring: bool
) -> None:
    own = {f"{number}.py": flatten([symbol(name, 0, 0) for name in names]) for number, names in enumerate(files)}
    index = filled(**own)
    if is_restored:
        restored = SymbolIndex()
        for path in index.paths():
            entry = index.entry(path)
            assert entry is not None
            restored.restore(path, entry, packed(names_in(entry)))
        while restored.map_names(1):
            pass
        index = restored
    asked = parse_pattern(pattern, substring=substring)
    hits = index.find(asked)
    reading = next((one for one in asked.readings if any(fitting(own, one))), asked.readings[0])
    assert [(hit.path, hit.place) for hit in hits] == [*fitting(own, reading)]
    assert [hits[number] for number in range(len(hits))] == list(hits)
    assert hits[1:3] == list(hits)[1:3]
    assert hits.per_file == Counter(hit.path for hit in hits)


def fitting(files: dict[str, FileSymbols], reading: Reading) -> Iterator[tuple[str, int]]:
    """What fits when each symbol is looked at."""
    for path, file in files.items():
        for place in range(len(file.symbols)):
            is_named = reading.substring or file.symbols[place].name in reading.names
            if is_named and reading.fits(file.path(place), path):
                yield path, place


@pytest.mark.anyio
@pytest.mark.parametrize("before", [["x.py", "y.py"], ["y.py"]])
async def test_symbols_of_a_file_that_changes_while_they_are_counted_are_those_of_one_moment(
    monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    after = flatten([symbol("open", 0, 1), symbol("to", 2, 3)])

    async def found_when_changed_at(moment: int) -> tuple[list[str], int]:
        index = filled(**dict.fromkeys(before, FILE))

        async def changing(steps: Iterable[None]) -> AsyncIterator[None]:
            for number, step in enumerate(steps):
                if number == moment:
                    index.put("x.py", after, stamp=STAMP, indexed_at_ns=2, source="fake 1")
                yield step

        monkeypatch.setattr(index_module, "paced", changing)
        hits = await index.find_paced(parse_pattern("o", substring=True))
        return [hit.name_path for hit in hits if hit.path == "x.py"], hits.per_file["x.py"]

    for moment in range(12):
        names, count = await found_when_changed_at(moment)
        assert names in (["Shop", "Shop/Till/open", "open"] if "x.py" in before else [], ["open", "to"], ["open"])
        assert count == len(names)


def test_entries_survive_the_cache() -> None:
    index = filled(**{"x.py": FILE})
    entry = index.entry("x.py")
    assert entry is not None
    other = SymbolIndex()
    other.restore("x.py", entry, packed(names_in(entry)))
    assert tuple(other.file("x.py").symbols) == FILE.symbols
    assert found(other, "Shop") == ["x.py:Shop"]


def test_what_the_cache_brought_is_found_before_its_names_are_mapped_while_they_are_and_afterwards() -> None:
    source = filled(**{"x.py": FILE, "y.py": FILE, "z.py": FILE})
    index = SymbolIndex()
    for path in ("x.py", "y.py", "z.py"):
        entry = source.entry(path)
        assert entry is not None
        index.restore(path, entry, packed(names_in(entry)))
    assert found(index, "Till") == ["x.py:Shop/Till", "y.py:Shop/Till", "z.py:Shop/Till"]
    assert found(index, "Til") == []
    assert found(index, "Til", substring=True) == ["x.py:Shop/Till", "y.py:Shop/Till", "z.py:Shop/Till"]
    assert found(index, "p\0T", substring=True) == []
    assert found(index, "Til", "a", substring=True) == []
    assert index.map_names(1)
    assert found(index, "Til", substring=True) == ["x.py:Shop/Till", "y.py:Shop/Till", "z.py:Shop/Till"]
    assert found(index, "Till") == ["x.py:Shop/Till", "y.py:Shop/Till", "z.py:Shop/Till"]
    index.put("x.py", flatten([symbol("New", 0, 1)]), stamp=STAMP, indexed_at_ns=1, source="fake 1")
    assert found(index, "Till") == ["y.py:Shop/Till", "z.py:Shop/Till"]
    assert not index.map_names(100)
    assert found(index, "Till") == ["y.py:Shop/Till", "z.py:Shop/Till"]
    assert found(index, "Til", substring=True) == ["y.py:Shop/Till", "z.py:Shop/Till"]
    index.drop("y.py")
    index.drop("z.py")
    assert list(index.names()) == ["New"]


def test_names_of_a_file_are_mapped_in_parts_and_it_is_found_by_all_of_them_and_can_change_meanwhile() -> None:
    entry = filled(**{"x.py": FILE}).entry("x.py")
    assert entry is not None
    number = len(names_in(entry))
    for mapped in range(1, number + 2):
        index = SymbolIndex()
        index.restore("x.py", entry, packed(names_in(entry)))
        assert index.map_names(mapped) == (mapped <= number)
        for name, count in (("Shop", 1), ("sell", 2), ("Till", 1), ("open", 2)):
            assert len(index.find(parse_pattern(name))) == len(index.find(parse_pattern(name), "x.py")) == count
        index.drop("x.py")
        assert not index.map_names(mapped)
        assert found(index, "sell") == list(index.names()) == []
        index.put("x.py", FILE, stamp=STAMP, indexed_at_ns=1, source="fake 1")
        assert found(index, "open") == ["x.py:Shop/Till/open", "x.py:open"]


def test_a_container_is_found_by_the_type_that_it_implements_and_by_each_part_of_its_name() -> None:
    def others(name: str, count: int = 30) -> dict[str, FileSymbols]:
        return {f"{number}.rs": flatten([symbol(name, 0, 9, symbol("open", 1, 2))]) for number in range(count)}

    for container, asked in (
        ("impl<R: Read> Trait for &mut Till<R>", "Till"),
        ("Till<T>", "Till"),
        ("api/Till", "Till"),
        ("Till[1]", "Till[1]"),
    ):
        file = flatten([symbol(container, 0, 9, symbol("open", 1, 2))])
        assert [one.partition(":")[0] for one in found(filled(**others("Other"), x=file), f"{asked}/open")] == ["x"]
    scoped = flatten([method("open", 0, "Till")])
    index = filled(**others("Other"), **{"x.go": scoped})
    assert found(index, "Till/open") == ["x.go:Till/open"]
    restored = SymbolIndex()
    for path in index.paths():
        entry = index.entry(path)
        assert entry is not None
        restored.restore(path, entry, packed(names_in(entry)))
    assert found(restored, "Till/open") == ["x.go:Till/open"]
    index.drop("x.go")
    assert "Till" not in index.names()


def method(name: str, line: int, *scope: str) -> DocumentSymbol:
    return msgspec.structs.replace(symbol(name, line, line, kind=SymbolKind.METHOD), scope=scope)


def test_a_method_that_stands_outside_of_its_class_has_the_class_in_its_name_path() -> None:
    file = flatten([method("area", 0, "Square"), method("area", 1, "Tile"), symbol("area", 2, 2)])
    assert [file.name_path(place) for place in range(3)] == ["Square/area", "Tile/area", "area"]
    assert found(filled(a=file), "Square/area") == ["a:Square/area"]
    assert found(filled(a=file), "/area") == ["a:area"]
    assert file.place_of("Tile/area") == 1


def test_a_method_that_stands_beside_its_class_becomes_its_child() -> None:
    inner = symbol("ns", 4, 9, symbol("Square", 5, 6, symbol("side", 6, 6)))
    file = flatten([method("area", 0, "ns", "Square"), inner, method("area", 10, "ns", "Tile")])
    assert [file.name_path(place) for place in range(5)] == [
        "ns",
        "ns/Square",
        "ns/Square/side",
        "ns/Square/area",
        "ns/Tile/area",
    ]
    place = file.enclosing(Position(0, 3))
    assert place is not None
    assert file.name_path(place) == "ns/Square/area"


def test_a_name_spelt_alike_is_among_those_compared_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "NAMES_COMPARED", 5)
    index = SymbolIndex()
    names = [f"other{number}" for number in range(40)] + ["schedule_timeout"]
    index.put("x.py", flatten([symbol(name, 0, 1) for name in names]), stamp=STAMP, indexed_at_ns=1, source="fake 1")
    assert nearest("schedule_timeot", index.names_like("schedule_timeot")) == ["schedule_timeout"]
    assert nearest("shcedule_timeout", index.names_like("shcedule_timeout")) == ["schedule_timeout"]
    assert len(list(index.names_like("other"))) <= 10
