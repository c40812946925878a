"""The data that a Project returns about symbols; it could as well come from another machine.

Lines are 0-based, columns count code points (core/text.py), paths are root-relative POSIX paths.
"""

from collections.abc import Sequence

import msgspec

from serena_central.core.text import Range
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import Diagnostic
from serena_central.symbols.index import Hit
from serena_central.symbols.indexing.incompleteness import Incompleteness


class SymbolView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A symbol where it is defined. `path` is root-relative."""

    name: str
    name_path: str
    kind: int
    path: str
    range: Range
    body: str | None = None
    info: str | None = None
    children: Sequence["SymbolView"] = ()
    hashes: dict[str, str] = {}
    """Name path → hash of the body, of this symbol and, where `body` is given, of all that it contains."""
    digest: str | None = None
    """Of the file's content, where `body` is given."""

    @property
    def bare(self) -> "SymbolView":
        """Its name and place alone."""
        return SymbolView(name=self.name, name_path=self.name_path, kind=self.kind, path=self.path, range=self.range)


class ReferenceView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One use of a symbol: the innermost symbol that holds it (None: top level of the file), and the place. `stamp`: of
    the text that it is a place of."""

    path: str
    holder: SymbolView | None
    range: Range
    stamp: Stamp


class PossibleReference(msgspec.Struct, frozen=True):
    """A place that may refer to a symbol: line (0-based), the innermost symbol around it (None: top level), and why."""

    path: str
    line: int
    within: str | None
    why: str


class PossibleReferences(msgspec.Struct, frozen=True):
    """Places of a symbol's name in code of which the language server can't tell what they mean.

    `first` are the nearest ones of `total`. `unexamined`: places that nobody looked at. `common`: built-in types have
    a member of that name, so that most places will mean that. `strings`: the first of those `in_strings` that may mean
    the symbol, as `path:line in name path`.
    """

    name: str
    first: list[PossibleReference] = []
    total: int = 0
    unexamined: int = 0
    common: bool = False
    strings: list[str] = []
    in_strings: int = 0


class References(msgspec.Struct, frozen=True):
    references: list[ReferenceView]
    outside: int = 0
    """Uses in files outside the project (libraries, other projects)."""
    gaps: list[Incompleteness] = []
    note: str | None = None
    """Why the language server's answer may be incomplete."""
    caveat: str | None = None
    """What it may lack as long as the project doesn't say how it is built."""
    possible: PossibleReferences | None = None


class Uses(msgspec.Struct, frozen=True):
    """Where a symbol is named besides its own definition: path → ranges. `outside`: how many lie in other projects.

    `note` says why the answer may lack something; `failed` that there is none. `beside` says what is not known of files
    that another server reads together with the symbol's; `beside_failed` that such a server is there and did not say.
    """

    places: dict[str, list[Range]] = {}
    outside: int = 0
    note: str | None = None
    beside: str | None = None
    beside_failed: bool = False
    failed: bool = False


class DiagnosticView(msgspec.Struct, frozen=True):
    """A diagnostic and the name path of the innermost symbol that holds its start (None: top level)."""

    diagnostic: Diagnostic
    name_path: str | None


class HierarchyNode(msgspec.Struct, kw_only=True):
    """One symbol in a call or type hierarchy. `cycle`: it stands above itself, and is not followed again.

    `outside`: it belongs to a library or another project; its path is absolute, and it is followed in the project alone
    that the question was about.
    """

    name: str
    kind: int
    path: str
    line: int
    outside: bool = False
    cycle: bool = False
    below: list["HierarchyNode"] = []

    @property
    def in_short(self) -> str:
        """Where it is, and its name."""
        return f"{'outside the project' if self.outside else self.path}: {self.name}"


def view_of(
    hit: Hit,
    depth: int = 0,
    *,
    body: str | None = None,
    info: str | None = None,
    hashes: dict[str, str] | None = None,
    digest: str | None = None,
) -> SymbolView:
    """The view of a symbol with its children down to `depth`."""
    path, file, place = hit
    symbol = file.brief(place)
    below = file.children(place) if depth > 0 else ()
    return SymbolView(
        name=symbol.name,
        name_path=file.name_path(place),
        kind=symbol.kind,
        path=path,
        range=symbol.range,
        body=body,
        info=info,
        hashes=hashes or {},
        digest=digest,
        children=[view_of(Hit(path, file, child), depth - 1) for child in below] if below else (),
    )
