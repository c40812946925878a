"""Navigation in one project: where names lead, and what language servers say of symbols and files.

Language servers answer with places, which the index maps to symbols. Callers have passed the tree's barrier and hold a
symbol or a position.
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from serena_central.core.errors import PathDenied
from serena_central.core.text import Position
from serena_central.files.boundary import Access
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Diagnostic, Location
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.candidates import CandidateSearch
from serena_central.projects.navigation.closed_text import ClosedText
from serena_central.projects.navigation.consistency import Steady
from serena_central.projects.navigation.leads import Leads
from serena_central.projects.navigation.possible_references import Possible
from serena_central.projects.navigation.project_places import ProjectPlaces
from serena_central.projects.navigation.server_questions import ServerQuestions, joined
from serena_central.projects.navigation.symbol_hierarchies import Foreign, SymbolHierarchies
from serena_central.projects.navigation.symbol_references import SymbolReferences
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.navigation.uses_by_place import UsesByPlace
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer


class Navigation:
    """Questions about one project's symbols. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        indexer: Indexer,
        languages: ProjectLanguages,
        access: Access,
    ) -> None:
        self._root = root
        self._indexer = indexer
        self._languages = languages
        self.closed_text = ClosedText(
            root, hidden=tree.hidden, is_code=lambda path: languages.language_of(path) is not None
        )
        self._steady = Steady(tree, index, indexer)
        self.places = ProjectPlaces(root, tree, index, indexer, languages, access)
        self.questions = ServerQuestions(root, tree, languages)
        search, leads = CandidateSearch(root, tree, languages), Leads(root, tree, languages)
        self.possible = Possible(root, tree, index, indexer, languages, search, leads)
        by_place = UsesByPlace(root, tree, languages, self.questions, search, leads)
        self.references = SymbolReferences(
            root, self.places, indexer, languages, self.questions, self.possible, by_place, leads, self._steady
        )
        self.declarations = Leads(root, tree, languages, "declaration")
        """Of servers that tell declarations from definitions, where symbols are declared: of jdtls, the topmost method
        that one overrides; nothing of one that overrides none."""
        self.hierarchies = SymbolHierarchies(root, self.places, self.questions, self._steady)

    async def hover(self, hit: Hit) -> str | None:
        """What the server shows about a symbol: signature and documentation, usually Markdown."""

        async def ask(hit: Hit) -> tuple[str | None, Collection[str]]:
            path, position = self._root / hit.path, hit.symbol.name_position
            return await self._languages.ask(hit.path, lambda server: server.hover(path, position)), ()

        shown, unsteady = await self._steady.ask(hit, ask)
        return None if unsteady or shown is None else await self.closed_text.without(hit.path, shown)

    async def definition(self, path: str, position: Position) -> tuple[list[Hit], list[Location], str | None]:
        """Symbols that are defined where the name at `position` leads; places outside the project; a note."""
        locations, note = await self.targets(path, position)
        inside, outside = self.places.split(locations)
        hits, _ = await self.places.symbols_at([Location(self._root / file, span) for file, span in inside])
        shown = [place for place in outside if not self.places.is_closed(place.path)]
        if outside and not shown and not hits:
            raise PathDenied("What is named there is defined in a file that a permission rule closes.")
        return hits, shown, note

    async def targets(self, path: str, position: Position) -> tuple[list[Location], str | None]:
        """Where the name at a position leads, in this project or elsewhere; a note.

        Raises:
            LanguageServerError
        """
        absolute = self._root / path
        return await self.questions.when_ready(path, lambda server: server.definition(absolute, position))

    async def implementations(self, hit: Hit) -> tuple[list[Hit], int, str | None]:
        """Symbols that implement one; how many lie outside the project; a note."""

        async def ask(hit: Hit) -> tuple[tuple[list[Hit], int, str | None], Collection[str]]:
            path, position = self._root / hit.path, hit.symbol.name_position
            candidates, unopened = await self.questions.files_to_show(hit.path, hit.symbol.name)
            locations, note = await self.questions.when_ready(
                hit.path, lambda server: server.implementation(path, position, candidates=candidates)
            )
            hits, outside = await self.places.symbols_at(locations)
            return (hits, outside, joined(note, unopened)), {found.path for found in hits}

        (hits, outside, note), unsteady = await self._steady.ask(hit, ask)
        return hits, outside, await self.questions.with_blind_spots(hit.path, {hit.symbol.name}, joined(note, unsteady))

    async def implementations_of(self, foreign: Foreign) -> tuple[list[Location], str | None]:
        """Where a symbol of another project is implemented, in all that this project's server reads; a note."""
        candidates, unopened = await self.questions.files_to_show(foreign.via, foreign.name)
        locations, note = await self.questions.when_ready(
            foreign.via,
            lambda server: server.implementation(foreign.path, foreign.position, candidates=candidates),
        )
        return locations, joined(note, unopened)

    async def diagnostics(self, path: str) -> tuple[list[DiagnosticView], str | None]:
        """What the server complains about in a file, each with the symbol it lies in; a note."""
        absolute = self._root / path
        found, note = await self.questions.when_ready(path, lambda server: server.diagnostics(absolute))
        await self._indexer.ensure([path])
        views: list[DiagnosticView] = []
        for diagnostic in found:
            message = await self.closed_text.without(path, diagnostic.message)
            shown = msgspec.structs.replace(diagnostic, message=message)
            views.append(DiagnosticView(shown, self._name_path(path, diagnostic)))
        return views, note

    def _name_path(self, path: str, diagnostic: Diagnostic) -> str | None:
        holder = self.places.holder(path, diagnostic.range.start)
        return holder.name_path if holder else None
