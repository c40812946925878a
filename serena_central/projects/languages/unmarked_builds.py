"""Files without build information: their servers cannot know how they are built, so they are read by syntax as well.

Which of the two knows the files of a large project better is decided by a sample (symbols/comparison.py).
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.lsp.answers import DocumentSymbol
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.roots import has_marker
from serena_central.projects.languages.selection import LanguageSelection
from serena_central.projects.languages.syntax_access import SyntaxAccess
from serena_central.symbols.comparison import MANY_FILES, Comparison
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.union import united

logger = logging.getLogger(__name__)

DocumentSymbols = Callable[[str], Awaitable[Sequence[DocumentSymbol]]]
"""Asks the server for a root-relative path. Raises LanguageServerError."""


class UnmarkedBuilds:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, root: Path, selection: LanguageSelection, syntax: SyntaxAccess) -> None:
        self._root = root
        self._selection = selection
        self._syntax = syntax
        self.comparisons: dict[str, Comparison] = {}
        """Servers that can not know how many files are built → what a comparison with the syntax has brought."""
        self.changes = 0
        """How often it came to be told how files are built: clangd looks for that again only after half a minute."""
        self._united: set[str] = set()
        """Such servers that miss functions or types which the syntax tells."""
        self._unmarked: dict[tuple[str, str], bool] = {}
        """(server, folder of a file) → whether it can't know how files there are built; until `forget`."""
        self._marked_folders: dict[tuple[str, str], bool] = {}
        """(server, folder) → whether it, or one above it, has a marker; likewise. Thousands are looked at once each."""

    def marked(self) -> None:
        """A file came that may say how files are built."""
        if any(self._unmarked.values()):
            self.changes += 1
            self._united.clear()

    def forget(self) -> None:
        self._unmarked.clear()
        self._marked_folders.clear()

    def instead(self, path: str) -> str | None:
        """What reads a file by syntax in place of a server that can't know how it is built; None where one can."""
        spec, grammar = self._selection.spec_for(path), self._syntax.grammar(path)
        if spec is None or grammar is None or not self.is_unmarked_by(spec, path):
            return None
        return source_identity.instead(grammar)

    def is_unmarked_by(self, spec: ServerSpec, path: str) -> bool:
        if spec.roots.unmarked is None:
            return False
        place = spec.name, path.rpartition("/")[0]
        if place not in self._unmarked:
            self._unmarked[place] = not self._is_marked(spec, place[1])
        return self._unmarked[place]

    def _is_marked(self, spec: ServerSpec, folder: str) -> bool:
        known = self._marked_folders.get((spec.name, folder))
        if known is None:
            above = bool(folder) and self._is_marked(spec, folder.rpartition("/")[0])
            known = above or has_marker(self._root / folder, spec.roots.markers[0])
            self._marked_folders[spec.name, folder] = known
        return known

    @property
    def knows_builds(self) -> bool:
        """Whether it was looked at how files are built, so that symbols depend on what marks that."""
        return bool(self._unmarked)

    def reads_by_syntax(self, spec: ServerSpec) -> bool:
        """Whether all such files of a server are read by syntax alone."""
        compared = self.comparisons.get(spec.name)
        return compared is not None and compared.reads_by_syntax

    def read_instead(self) -> dict[str, str]:
        """Servers in whose place files are read by syntax alone → what they lack for these files."""
        read = (name for name, compared in self.comparisons.items() if compared.reads_by_syntax)
        return {name: catalogue().servers[name].roots.unmarked or "" for name in read}

    def read_besides(self) -> dict[str, str]:
        """Servers beside which files are read by syntax, which told more of some → what they lack for these files."""
        read = self._united - self.read_instead().keys()
        return {name: catalogue().servers[name].roots.unmarked or "" for name in sorted(read)}

    async def look_at(self, paths: Iterable[str]) -> None:
        """Sees which servers can't know so many of these files that all are read by syntax until it is decided who
        knows them better; root-relative paths."""
        unknown: dict[str, list[str]] = defaultdict(list)
        async for path in paced(list(paths)):
            spec = self._selection.spec_for(path)
            if spec is not None and spec.roots.unmarked is not None and self.instead(path) is not None:
                unknown[spec.name].append(path)
        for server, files in unknown.items():
            if len(files) >= MANY_FILES and server not in self.comparisons:
                self.comparisons[server] = Comparison(files)

    async def compare(self, ask: DocumentSymbols) -> bool:
        """Decides by samples who knows such files better; whether some are to be read by their server since."""
        moved = False
        for server, compared in self.comparisons.items():
            if compared.decided:
                continue
            try:
                for path in compared.sample:
                    await self._compare(path, compared, ask)
            except LanguageServerError as error:
                logger.info("%s was not compared with the syntax: %s", server, error)
                continue
            compared.close()
            logger.info("%s compared with the syntax: %s", server, compared)
            moved = moved or not compared.prefers_syntax
        return moved

    async def _compare(self, path: str, compared: Comparison, ask: DocumentSymbols) -> None:
        if compared.decided or self.instead(path) is None:
            return
        try:
            by_syntax = await self._syntax.outline(path)
            by_server = await ask(path)
        except PathError:
            return
        compared.add(by_server, by_syntax.symbols)

    async def united_with_syntax(self, path: str, by_server: Outline) -> Outline:
        """What a server and the syntax tell of a file that the server can't know."""
        spec = self._selection.spec_for(path)
        try:
            union = united(by_server, await self._syntax.outline(path))
        except LanguageServerError as error:
            logger.warning("cannot read the symbols of %s by syntax: %s", path, error)
            return by_server
        if union.adds_by_syntax and spec is not None:
            self._united.add(spec.name)
        return union.outline
