"""A find that is known is what would be found now."""

from collections.abc import AsyncIterator, Iterable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.pacing import paced
from serena_central.symbols import index as index_module
from serena_central.symbols import known_finds
from serena_central.symbols.index import SymbolIndex, names_in, packed
from serena_central.symbols.known_finds import KnownFinds
from serena_central.symbols.namepath import REMEMBERED_CHARS, parse_pattern
from serena_central.symbols.symbol import FileSymbols, flatten
from tests.unit.symbols.test_index import FILE, STAMP, filled, found, symbol

pytestmark = pytest.mark.anyio

NAMES = st.lists(st.sampled_from(["open", "to", "pen", "Shop/open"]))
PATHS = st.sampled_from(["a/x.py", "a/y.py", "z.py"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "restore"]), PATHS, NAMES),
    st.tuples(st.just("drop"), PATHS, st.just([])),
    st.tuples(st.sampled_from(["clear", "map"]), st.just(""), st.just([])),
)
QUESTIONS = (
    ("open", None, False),
    ("Shop/open", None, False),
    ("pe", None, True),
    ("open", "a", False),
    ("to", "a/x.py", False),
)


async def told(finds: KnownFinds, pattern: str, within: str | None = None, *, substring: bool = False) -> list[str]:
    hits = await finds.find(parse_pattern(pattern, substring=substring), within)
    return [f"{hit.path}:{hit.name_path}" for hit in hits]


@given(st.lists(STEPS, max_size=12))
async def test_who_asked_before_is_told_what_is_told_for_the_first_time(
    steps: list[tuple[str, str, list[str]]],
) -> None:
    index, files = SymbolIndex(), dict[str, FileSymbols]()
    finds = KnownFinds(index)
    for step, path, names in steps:
        file = flatten([symbol(name, line, line) for line, name in enumerate(names)])
        match step:
            case "put":
                index.put(path, file, stamp=STAMP, indexed_at_ns=1, source="fake 1")
                files[path] = file
            case "restore" if path not in files:
                entry = filled(**{path: file}).entry(path)
                assert entry is not None
                index.restore(path, entry, packed(names_in(entry)))
                files[path] = file
            case "drop":
                index.drop(path)
                files.pop(path, None)
            case "clear":
                index.clear()
                files.clear()
            case _:
                index.map_names(1)
        new = filled(**files)
        for pattern, within, substring in QUESTIONS:
            now = found(new, pattern, within, substring=substring)
            assert await told(finds, pattern, within, substring=substring) == now


async def test_a_find_is_known_until_a_file_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(**{"x.py": FILE})
    finds, pattern = KnownFinds(index), parse_pattern("open")
    hits = await finds.find(pattern, None)
    assert hits
    assert await finds.find(pattern, None) is hits
    assert await finds.find(pattern, "x.py") is not hits
    index.put("y.py", flatten([]), stamp=STAMP, indexed_at_ns=1, source="fake 1")
    now = await finds.find(pattern, None)
    assert now is not hits
    for number in range(known_finds.MOST_FINDS):
        await finds.find(parse_pattern(f"other{number}"), None)
    assert await finds.find(pattern, None) is not now, "finds without symbols are kept without end"
    long = parse_pattern("a/" * REMEMBERED_CHARS + "open")
    assert await finds.find(long, None) is not await finds.find(long, None)
    assert parse_pattern(long.text) is not long
    monkeypatch.setattr(known_finds, "FILES_KEPT", 0)
    index.drop("y.py")
    assert await finds.find(pattern, None) is not await finds.find(pattern, None), "many files are not kept decoded"


async def test_what_was_found_while_a_file_changed_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told_when_changed_at(moment: int) -> list[str] | None:
        index = filled(**{"x.py": FILE, "y.py": FILE})
        finds = KnownFinds(index)

        async def changing(steps: Iterable[None]) -> AsyncIterator[None]:
            for number, step in enumerate(steps):
                if number == moment:
                    index.put("x.py", flatten([]), stamp=STAMP, indexed_at_ns=2, source="fake 1")
                    with monkeypatch.context() as usual:
                        usual.setattr(index_module, "paced", paced)
                        await told(finds, "Shop")  # of another caller
                yield step

        with monkeypatch.context() as changed:
            changed.setattr(index_module, "paced", changing)
            await told(finds, "Till/open")
        return await told(finds, "Till/open") if not index.file("x.py").symbols else None

    for moment in count():
        again = await told_when_changed_at(moment)
        if again is None:  # the search has no more steps
            break
        assert again == ["y.py:Shop/Till/open"]
    assert moment > 2
