"""The names of many symbols: files are decoded only for as many as may fit into an answer."""

import pytest

from serena_central.core.text import Position, Range
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.index import Entry, SymbolIndex
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.tools.answer import fit, shaped
from serena_central.tools.symbol_answers import _named, per_file  # pyright: ignore[reportPrivateUsage]

SPAN = Range(Position(0, 0), Position(0, 9))


@pytest.fixture
def index() -> SymbolIndex:
    index = SymbolIndex()
    for number in range(100):
        holder = DocumentSymbol(
            f"Holder{number:02}", SymbolKind.CLASS, SPAN, SPAN, "", [DocumentSymbol("opened", 6, SPAN, SPAN, "", [])]
        )
        index.put(f"f{number:02}.py", flatten([holder]), stamp=Stamp(1, 1, 1, 1), indexed_at_ns=1, source="fake 1")
    return index


@pytest.mark.anyio
async def test_names_are_read_for_as_long_as_they_may_fit(index: SymbolIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: set[str] = set()
    decode = SymbolIndex.decoded

    def noted(self: SymbolIndex, path: str, entry: Entry, *, keep: bool = True) -> FileSymbols:
        decoded.add(path)
        return decode(self, path, entry, keep=keep)

    monkeypatch.setattr(SymbolIndex, "decoded", noted)
    hits = index.find(parse_pattern("opened"))
    assert await _named(hits, hits.shortest_name, 899) is None
    assert decoded == set()
    assert await _named(hits, hits.shortest_name, 1000) is None
    assert len(decoded) == 12
    assert await _named(hits, hits.shortest_name, 1799) is None
    named = await _named(hits, hits.shortest_name, 1800)
    assert named is not None
    assert named == [(hit.path, hit.name_path) for hit in hits]
    paths = sum(len(path) + len('"":[]') for path, _ in named)
    text, *_ = fit({"p": shaped(lambda: per_file(named), narrow="")}, 10_000, grouped=False)
    assert len(text) == 1800 + paths + 1
