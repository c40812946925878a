"""The symbols of a part of a project and their references: plain data for graphs and findings.

Lines and columns are 0-based, columns count code points, paths are root-relative POSIX paths.
"""

import msgspec

from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols

Place = tuple[int, int]
"""Line and column."""

CONTAINERS = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.PACKAGE})
"""What only groups names: symbols in it count as top-level ones."""

CALLABLE = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})


class Definition(msgspec.Struct):
    """One symbol and its uses: path → places. Without `asked` its name occurs nowhere else, and no server was asked.

    Without `known` its references are unknown or incomplete. `possible`: path → places of its name
    in code of which the language server can't tell what they mean; `unexamined`: how many places were not looked at.
    `exempt`: why its references were not asked for, if nobody wants to know them.
    """

    path: str
    name_path: str
    kind: int
    line: int
    uses: dict[str, list[Place]] = {}
    outside: int = 0
    asked: bool = False
    known: bool = True
    possible: dict[str, list[Place]] = {}
    unexamined: int = 0
    exempt: str = ""

    @property
    def id(self) -> str:
        return f"{self.path}:{self.name_path}"

    @property
    def name(self) -> str:
        """The last part of its name path, without a number."""
        return self.name_path.rpartition("/")[2].partition("[")[0]


class Collected(msgspec.Struct):
    """What was found in a folder. `reused`: answers of an earlier run, whose files are as they were.

    `unasked`: symbols that time did not suffice for, `elsewhere` of which were not to be asked about, since their files
    are not built on this platform. `notes` say what may lack, and why.
    """

    definitions: list[Definition]
    files: list[str]
    asked: int = 0
    reused: int = 0
    unasked: int = 0
    elsewhere: int = 0
    notes: list[str] = []


def is_top_level(file: FileSymbols, place: int) -> bool:
    """Whether a symbol stands at its file's top, or in nothing but namespaces."""
    container = file.symbols[place].container
    while container >= 0:
        if file.symbols[container].kind not in CONTAINERS:
            return False
        container = file.symbols[container].container
    return True


def is_local(file: FileSymbols, place: int) -> bool:
    """Whether a symbol stands inside a function."""
    container = file.symbols[place].container
    while container >= 0:
        if file.symbols[container].kind in CALLABLE:
            return True
        container = file.symbols[container].container
    return False


def chosen(file: FileSymbols, path: str, kinds: frozenset[int]) -> list[Hit]:
    """The symbols of a file that a question is about: those at the top, or with `kinds` all of these but locals."""
    return [
        Hit(path, file, place)
        for place, symbol in enumerate(file.symbols)
        if (symbol.kind in kinds and not is_local(file, place) if kinds else is_top_level(file, place))
        and symbol.name.isidentifier()
    ]
