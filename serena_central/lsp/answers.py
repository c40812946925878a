"""The data that this layer returns: absolute paths and code-point positions, without URIs or LSP units.

The structs of the wire are in `types`, the conversions in `conversion`.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from serena_central.core.text import Range

MOST_SYMBOLS = 50_000
"""Of one file that are kept: generated data has 200,000, and nobody looks for one of them by its name."""

DEEPEST_SYMBOLS = 400
"""Levels of one file's symbols: sources nest 100 deep, and what goes through symbols makes up to two calls for a level,
of the 1000 that Python allows."""


class SymbolKind(IntEnum):
    """LSP 3.17, SymbolKind."""

    FILE = 1
    MODULE = 2
    NAMESPACE = 3
    PACKAGE = 4
    CLASS = 5
    METHOD = 6
    PROPERTY = 7
    FIELD = 8
    CONSTRUCTOR = 9
    ENUM = 10
    INTERFACE = 11
    FUNCTION = 12
    VARIABLE = 13
    CONSTANT = 14
    STRING = 15
    NUMBER = 16
    BOOLEAN = 17
    ARRAY = 18
    OBJECT = 19
    KEY = 20
    NULL = 21
    ENUM_MEMBER = 22
    STRUCT = 23
    EVENT = 24
    OPERATOR = 25
    TYPE_PARAMETER = 26


class DocumentSymbol(msgspec.Struct, gc=False):
    """A symbol of one file. `kind` is an LSP SymbolKind, or a number that the server made up.

    `range` is the whole definition as the server draws it, `selection` its name. `scope` are the containers, outermost
    first, of a symbol that stands outside of them: the class of a method that is defined elsewhere. `flat`: the server
    named one range only (LSP's SymbolInformation), which may begin behind the definition's start; `selection` was found
    in the text.
    """

    name: str
    kind: int
    range: Range
    selection: Range
    detail: str = ""
    children: list["DocumentSymbol"] = []
    scope: tuple[str, ...] = ()
    flat: bool = False


def at_all_levels(symbols: Iterable[DocumentSymbol]) -> Iterator[DocumentSymbol]:
    """Symbols, each followed by those in it."""
    for symbol in symbols:
        yield symbol
        yield from at_all_levels(symbol.children)


class Location(msgspec.Struct, frozen=True, gc=False):
    """A stretch of one file."""

    path: Path
    range: Range


class Replacement(NamedTuple):
    """What stands in `range` is to be replaced by `new_text`."""

    range: Range
    new_text: str


class WorkspaceEdit(msgspec.Struct):
    """Changes that a server proposes: replacements by file, all meant for its text as it is, and files to be renamed
    (old path, new path). `unusable`: it proposes something else as well, or something in what is no readable file."""

    replacements: dict[Path, list[Replacement]] = {}
    moves: list[tuple[Path, Path]] = []
    unusable: bool = False


class Diagnostic(msgspec.Struct):
    """A complaint about a stretch of a file. `severity`: 1 error, 2 warning, 3 information, 4 hint (LSP 3.17)."""

    range: Range
    severity: int
    message: str
    code: str | None = None
    source: str | None = None


class HierarchyItem(msgspec.Struct):
    """A symbol in a call or type hierarchy. `raw` is the server's own item, which the follow-up requests must carry."""

    name: str
    kind: int
    detail: str
    path: Path
    range: Range
    selection: Range
    raw: msgspec.Raw


class HierarchyCall(msgspec.Struct):
    """One caller or callee. `ranges` are the places of the calls, always in the caller's file."""

    item: HierarchyItem
    ranges: list[Range]


class Signature(msgspec.Struct):
    """One way to call what stands at a place: its label as the server writes it, and its documentation as Markdown."""

    label: str
    documentation: str = ""


class FileEvent(NamedTuple):
    """What happened to a file on disk, as the watcher or a stat saw it. `path` is absolute."""

    path: Path
    kind: Literal["created", "changed", "deleted"]
