"""Finds methods that may be called through an interface they need not name: in Go, TypeScript, protocols of Python."""

import re
from collections.abc import Collection

from serena_central.core.errors import Inapplicable, LanguageServerError, PathError
from serena_central.core.pacing import Pace
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols

LOOKED_UP = 20
"""Names that are looked for in the files that define them; for more, the symbols of all files are read once, which
takes 100 ms for Django's."""

_HEAD_LINES = 6
"""Lines in which the bases of a class stand."""

_PROTOCOL = re.compile(r"class\s+\w+\s*(?:\[[^(]*\])?\([^)]*\bProtocol\b")


class Interfaces:
    """Of one project, for one question: files change. Belongs to the event loop's thread."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._methods: set[str] | None = None
        self._looked_up: dict[str, bool] = {}

    async def hold(self, name: str) -> bool | None:
        """Whether an interface of the project has a member of a name; None if files that may define one could not be
        read in time."""
        if not await self._project.navigation.possible.are_holders_read(name):
            return None
        are_few = len(self._looked_up) < LOOKED_UP or not self._project.indexer.is_complete
        if self._methods is None and name not in self._looked_up and are_few:
            self._looked_up[name] = name in await self._methods_in(self._project.index.holding(name))
        if name in self._looked_up:
            return self._looked_up[name]
        if self._methods is None:
            self._methods = await self._methods_in(self._project.index.paths())
        return name in self._methods

    async def _methods_in(self, paths: Collection[str]) -> set[str]:
        """Names that interfaces in some files hold."""
        return await _in_interfaces(self._project, paths) | await self._in_protocols(paths)

    async def implemented(self, hit: Hit) -> str | None:
        """Why a method may be called through an interface, those of libraries included; None if none has it.

        For languages whose server tells the interfaces of a method.
        """
        if hit.symbol.kind != SymbolKind.METHOD:
            return None
        try:
            inside, outside, _ = await self._project.navigation.implementations(hit)
        except Inapplicable:
            return None
        except LanguageServerError:
            return "the language server cannot tell whether it implements an interface member"
        return "it implements an interface member" if inside or outside else None

    async def _in_protocols(self, paths: Collection[str]) -> set[str]:
        project, names = self._project, set[str]()
        files = [path for path in paths if project.languages.language_of(path) == "python"]
        for path in await project.navigation.possible.holding(files, "Protocol"):
            try:
                text = (await project.read(path)).text
            except PathError:
                continue
            if path in project.index:
                names |= _of_protocols(project.index.file(path), text)
        return names


async def _in_interfaces(project: Project, paths: Collection[str]) -> set[str]:
    names: set[str] = set()
    pace = Pace()
    for path in list(paths):
        if await pace.turn() and path not in project.index:
            continue
        symbols = project.index.file(path).symbols
        names.update(
            symbol.name
            for symbol in symbols
            if symbol.container >= 0 and symbols[symbol.container].kind == SymbolKind.INTERFACE
        )
    return names


def _of_protocols(file: FileSymbols, text: Text) -> set[str]:
    protocols = {
        place
        for place, symbol in enumerate(file.symbols)
        if symbol.kind in (SymbolKind.CLASS, SymbolKind.INTERFACE)
        and _PROTOCOL.search(text.lines(symbol.name_line, min(symbol.name_line + _HEAD_LINES, symbol.end_line)))
    }
    return {symbol.name for symbol in file.symbols if symbol.container in protocols}
