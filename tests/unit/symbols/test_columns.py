"""What the index keeps of a file's symbols says again what they were, and finds names as a plain loop does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.symbols.columns import SymbolColumns, compressed, decompressed, is_whole
from serena_central.symbols.symbol import Brief, FileSymbols, Symbol

NAMES = st.text(st.sampled_from("ab\0\1/é "), max_size=4) | st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(0, 300) | st.integers(0, 1 << 40)
TEXTS = st.sampled_from(["", "str"]) | NAMES
SYMBOLS = st.builds(
    Symbol,
    NAMES,
    st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(1, 26),
    st.integers(-1, 200),
    st.none() | st.integers(0, 50_000),
    *[NUMBERS] * 6,
    TEXTS,
    TEXTS,
    st.booleans(),
)
FILES = st.builds(FileSymbols, st.lists(SYMBOLS, max_size=6).map(tuple), st.booleans())


@given(FILES)
def test_a_file_is_what_it_was(file: FileSymbols) -> None:
    blob = compressed(file)
    again = decompressed(blob)
    assert [again.symbols[place] for place in range(len(again.symbols))] == list(file.symbols)
    assert (again.symbols[1:], again.cut) == (tuple(file.symbols[1:]), file.cut)
    assert compressed(again) == blob
    assert list(again.symbols.kinds) == [symbol.kind for symbol in file.symbols]
    assert list(again.names) == list(file.names)
    assert again.lookup_names == file.lookup_names


@given(FILES, st.data())
def test_a_symbol_in_brief_is_as_the_whole_one(file: FileSymbols, data: st.DataObject) -> None:
    known, places = decompressed(compressed(file)), list(range(len(file.symbols)))
    for place in data.draw(st.permutations(places)):
        brief, whole = known.brief(place), file.symbols[place]
        assert brief.parts == whole.parts
        for field in Brief.__struct_fields__:
            assert getattr(brief, field) == getattr(whole, field)
        assert known.symbols[place] == whole


@given(FILES, st.sets(NAMES, max_size=3), NAMES.filter(bool))
def test_names_are_found_where_a_loop_finds_them(file: FileSymbols, names: set[str], part: str) -> None:
    known = decompressed(compressed(file)).symbols
    own = {symbol.name for symbol in file.symbols[:2]}
    for wanted in (names, own, names | own):
        assert known.named(wanted) == [place for place, symbol in enumerate(file.symbols) if symbol.name in wanted]
    for wanted in {part, *own} - {""}:
        assert known.with_part(wanted) == [place for place, name in enumerate(file.names) if wanted in name]


def test_a_place_that_a_file_does_not_have_is_an_error() -> None:
    file = decompressed(compressed(FileSymbols((Symbol("a", 5, -1, None, 0, 0, 1, 0, 0, 0),))))
    assert file.symbols[-1].name == "a"
    for place in (1, -2):
        with pytest.raises(IndexError):
            file.symbols[place]


def test_a_byte_that_is_another_or_missing_is_noticed() -> None:
    blob = compressed(FileSymbols((Symbol("name", 5, -1, None, 0, 0, 1, 0, 0, 0),)))
    assert is_whole(blob)
    for at in range(len(blob)):
        assert not is_whole(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
        assert not is_whole(blob[:at])


def test_what_columns_cannot_hold_is_an_error() -> None:
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    for name, kind in (("a", 1 << 63), ("a", -(1 << 63) - 1), ("\ud800", 5), (characters, 5)):
        with pytest.raises(ValueError):
            compressed(FileSymbols((Symbol(name, kind, -1, None, 0, 0, 1, 0, 0, 0),)))


def test_symbols_asked_for_one_by_one_are_all_made_once_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    file = FileSymbols(tuple(Symbol(f"x{place}", 5, place - 1, None, *[place] * 6) for place in range(1000)))
    known, alone, make = decompressed(compressed(file)).symbols, list[int](), SymbolColumns._make

    def noted(self: SymbolColumns, place: int) -> Symbol:
        alone.append(place)
        return make(self, place)

    monkeypatch.setattr(SymbolColumns, "_make", noted)
    assert [known[place] for place in (7, 7, -1)] == [file.symbols[place] for place in (7, 7, -1)]
    assert alone == [7, 999]
    assert [known[place] for place in range(1000)] == list(file.symbols)
    assert len(alone) < 150


def test_many_symbols_in_brief_are_taken_out_of_all() -> None:
    file = FileSymbols(tuple(Symbol(f"x{place}", 5, place - 1, None, *[place] * 6) for place in range(100)))
    known = decompressed(compressed(file))
    assert known.name_path(2) == "x0/x1/x2"
    assert isinstance(known.brief(2), Brief)
    assert known.name_path(99) == "/".join(symbol.name for symbol in file.symbols)
    assert [known.brief(place).name for place in range(100)] == [symbol.name for symbol in file.symbols]
    assert known.brief(2) is known.symbols[2]


def test_many_symbols_of_a_very_large_file_are_told_one_by_one() -> None:
    """To take each by itself out of the text of all took a minute."""
    file = FileSymbols(
        tuple(Symbol(f"K_{place}", 14, -1, None, *[place] * 6, detail=f"= {place}") for place in range(100_000))
    )
    known = decompressed(compressed(file))
    assert [known.name_path(place) for place in range(0, 100_000, 11)] == [f"K_{n}" for n in range(0, 100_000, 11)]
    assert [known.symbols[place].detail for place in range(0, 100_000, 20)] == [f"= {n}" for n in range(0, 100_000, 20)]


def test_values_that_all_symbols_share_are_kept_once() -> None:
    def size(*details: str) -> int:
        symbols = [
            Symbol(f"x{place}", 5, -1, None, place, 0, place, 9, place, 0, one) for place, one in enumerate(details)
        ]
        return len(compressed(FileSymbols(tuple(symbols))))

    assert size(*["a long detail"] * 500) - size("a long detail") < size(*["a", "b"] * 250) - size("a")
