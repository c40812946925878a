"""Parts of names are found among all names of an index, also after some have gone."""

import pytest

from serena_central.files.stamp import Stamp
from serena_central.symbols import index as index_module
from serena_central.symbols import name_table
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.name_table import NameText
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.syntax.messages import Packed
from serena_central.symbols.syntax.worker import packed


def test_a_part_is_found_in_texts_and_in_what_is_not_joined_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_table, "NAMES_PER_TEXT", 4)
    names = NameText()
    names.add(["read_one", "write", "read_two", "one", "two_read", "é_read", "last"])
    assert sorted(names.containing("read")) == ["read_one", "read_two", "two_read", "é_read"]
    assert sorted(names.containing("one")) == ["one", "read_one"]
    assert list(names.containing("e\0")) == list(names.containing("none")) == []
    assert len(names) == 7


def test_what_files_no_longer_define_is_not_found_however_often_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (name_table, index_module):
        monkeypatch.setattr(module, "NAMES_PER_TEXT", 4)
    index = SymbolIndex()
    for number in range(50):
        symbols: Packed = packed("python", f"def part_{number}(): pass\ndef part_same(): pass".encode())
        index.put_packed("a.py", symbols, stamp=Stamp(1, 1, 1, 1), indexed_at_ns=1, source="fake")
    found = index.find(parse_pattern("part", substring=True))
    assert [hit.symbol.name for hit in found] == ["part_49", "part_same"]
