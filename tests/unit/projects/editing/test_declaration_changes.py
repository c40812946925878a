"""What an edit did to the names that a file declares: taken away, or with another signature."""

import pytest

from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.projects.editing.declaration_changes import Redeclared, all_gone, redeclared
from serena_central.symbols.symbol import FileSymbols, flatten

BEFORE = """\
class Cart:
    def total(self,
              tax=0):
        local = 1
        return local

def other():
    return 2
"""


def symbols(text: str) -> FileSymbols:
    """By indentation: what `def`, `class` and assignments declare, each to the end of its block."""
    lines = text.splitlines()

    def block(first: int, last: int, indent: int) -> list[DocumentSymbol]:
        found: list[DocumentSymbol] = []
        for at in range(first, last):
            line = lines[at]
            if len(line) - len(line.lstrip()) != indent or not line.strip():
                continue
            word, _, rest = line.strip().partition(" ")
            name = rest.partition("(")[0].rstrip(":") if word in ("def", "class") else word
            if word in (")", "return", "tax=0):") or not name.isidentifier():
                continue
            kind = {"def": SymbolKind.FUNCTION, "class": SymbolKind.CLASS}.get(word, SymbolKind.VARIABLE)
            end = next(
                (to for to in range(at + 1, last) if lines[to] and not lines[to].startswith(" " * (indent + 1))), last
            )
            column = line.index(name)
            found.append(
                DocumentSymbol(
                    name=name,
                    kind=kind,
                    range=Range(Position(at, indent), Position(end - 1, len(lines[end - 1]))),
                    selection=Range(Position(at, column), Position(at, column + len(name))),
                    children=block(at + 1, end, indent + 4),
                )
            )
        return found

    return flatten(block(0, len(lines), 0))


@pytest.mark.parametrize(
    ("old", "new", "gone", "changed"),
    [
        ("return 2", "return 3", set[str](), set[str]()),
        ("local = 1", "local = 2", set[str](), set[str]()),
        ("local = 1\n        return local", "return 1", set[str](), set[str]()),
        ("def other", "def others", {"other"}, set[str]()),
        ("def other():", "def other(n):", set[str](), {"other"}),
        ("tax=0", "tax=0, more=1", set[str](), {"total"}),
        ("class Cart:", "class Cart(Base):", set[str](), {"Cart"}),
        ("class Cart:", "class Basket:", {"Cart"}, set[str]()),
        ("\ndef other():\n    return 2\n", "", {"other"}, set[str]()),
        ("def other", "def first():\n    return 1\n\ndef other", set[str](), set[str]()),
    ],
)
def test_names_that_are_gone_or_changed_are_told_and_bodies_are_not(
    old: str, new: str, gone: set[str], changed: set[str]
) -> None:
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    found = redeclared(Text(BEFORE), symbols(BEFORE), Text(after), symbols(after))
    assert found == Redeclared(frozenset(gone), frozenset(changed))


def test_of_a_deleted_file_all_names_but_local_ones_are_gone() -> None:
    assert all_gone(symbols(BEFORE)).gone == {"Cart", "total", "other"}
