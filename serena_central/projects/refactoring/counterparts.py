"""Other declarations of a symbol, of which a build has one: a Go file per platform, a module of Python and its stub.

Language servers take each for a symbol of its own, and code that uses one uses all of them.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from serena_central.core.errors import PathError
from serena_central.files.tree import FileTree
from serena_central.lsp.go_platforms import build_condition
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.possible_references import Possible
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer

_PACKAGE = re.compile(r"^package\s+(\w+)", re.MULTILINE)

_DECLARED_OFTEN = frozenset({"_", "init", "main"})
"""Names that files of Go declare independently of each other."""


class Counterparts:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(
        self, tree: FileTree, index: SymbolIndex, indexer: Indexer, languages: ProjectLanguages, possible: Possible
    ) -> None:
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._languages = languages
        self._possible = possible

    async def of(self, hit: Hit) -> list[Hit]:
        """In other files than its own."""
        paths = await self._files(hit)
        await self._indexer.ensure(paths)
        files = {path: self._index.file(path) for path in paths if path in self._index}
        own = [part.name for part in hit.file.path(hit.place)]
        return [
            Hit(path, file, place)
            for path, file in files.items()
            for place, name in enumerate(file.names)
            if name == hit.symbol.name and [part.name for part in file.path(place)] == own
        ]

    async def _files(self, hit: Hit) -> list[str]:
        match PurePosixPath(hit.path).suffix:
            case ".py" | ".pyi":
                other = f"{hit.path}i" if hit.path.endswith(".py") else hit.path.removesuffix("i")
                return [other] if other in self._tree.files else []
            case ".go" if hit.symbol.name not in _DECLARED_OFTEN:
                folder = PurePosixPath(hit.path).parent
                beside = [path for path in self._tree.files if _is_go_in(path, folder) and path != hit.path]
                return self._built_instead(hit.path, sorted(await self._possible.holding(beside, hit.symbol.name)))
            case _:
                return []

    def _built_instead(self, path: str, others: Iterable[str]) -> list[str]:
        """Those files of a folder of Go that are in the package of a file, and built under another condition."""
        own = self._package_and_condition(path)
        conditions = ((other, self._package_and_condition(other)) for other in others)
        return [
            other
            for other, (package, condition) in conditions
            if package == own[0] and condition != own[1] and not {"ignore"} & {*condition, *own[1]}
        ]

    def _package_and_condition(self, path: str) -> tuple[str, tuple[str, ...]]:
        try:
            text = self._languages.read_text(self._tree.root / path).content
        except PathError:
            return "", ()
        found = _PACKAGE.search(text)
        return found[1] if found else "", build_condition(path, text)


def _is_go_in(path: str, folder: PurePosixPath) -> bool:
    return path.endswith(".go") and PurePosixPath(path).parent == folder
