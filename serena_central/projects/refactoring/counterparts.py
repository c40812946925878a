"""Other declarations of a symbol, of which a build has one: a Go file per platform, a module of Python and its stub, a
script and its declaration file.

Language servers take each for a symbol of its own, and code that uses one uses all of them.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import anyio.to_thread

from serena_central.files.text import read_each
from serena_central.files.tree import FileTree
from serena_central.lsp.go_platforms import build_condition
from serena_central.projects.navigation.language_rules import declared_beside, have_one_path
from serena_central.projects.navigation.possible_references import Possible
from serena_central.symbols.go_packages import package_name
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer

_DECLARED_OFTEN = frozenset({"_", "init", "main"})
"""Names that files of Go declare independently of each other."""


class Counterparts:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, tree: FileTree, index: SymbolIndex, indexer: Indexer, possible: Possible) -> None:
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._possible = possible

    async def of(self, hit: Hit) -> list[Hit]:
        """In other files than its own."""
        paths = await self._files(hit)
        await self._indexer.ensure(paths)
        files = {path: self._index.file(path) for path in paths if path in self._index}
        return [
            other
            for path, file in files.items()
            for place, name in enumerate(file.names)
            if name == hit.symbol.name and have_one_path(other := Hit(path, file, place), hit)
        ]

    async def _files(self, hit: Hit) -> list[str]:
        match PurePosixPath(hit.path).suffix:
            case ".go" if hit.symbol.name not in _DECLARED_OFTEN:
                beside = [path for path in self._tree.beside(hit.path) if path.endswith(".go")]
                holding = sorted(await self._possible.holding(beside, hit.symbol.name))
                return await anyio.to_thread.run_sync(_built_instead, self._tree.root, hit.path, holding)
            case _:
                return [path for path in declared_beside(hit.path) if path in self._tree.files]


def _built_instead(root: Path, path: str, others: Sequence[str]) -> list[str]:
    """Those files of Go that are in the package of one, and built under another condition. In a thread."""
    built = {
        one: (package_name(source), build_condition(one, source)) for one, source in read_each(root, [path, *others])
    }
    if path not in built:
        return []
    package, condition = built.pop(path)
    return [
        other
        for other, (its_package, its_condition) in built.items()
        if its_package == package and its_condition != condition and "ignore" not in (*its_condition, *condition)
    ]
