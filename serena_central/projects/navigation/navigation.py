"""Navigation between symbols: references, implementations, declarations, hierarchies, and their diagnostics.

Language servers answer these questions with places, which the index maps to symbols. Callers have
passed the tree's barrier and hold a symbol or a position.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import anyio
import msgspec

from serena_central.core.errors import (
    Inapplicable,
    PathDenied,
    PathNotFound,
    RequestFailed,
    Unsupported,
)
from serena_central.core.groups import only_cause
from serena_central.core.pacing import Pace
from serena_central.core.text import Position, Range
from serena_central.files.access import OPEN, Access
from serena_central.files.search import find_containing
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.files.words import words_of
from serena_central.lsp import answer_gaps
from serena_central.lsp.answers import Diagnostic, HierarchyItem, Location, WorkspaceEdit
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.documents import MAX_CANDIDATES
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.candidates import Candidates
from serena_central.projects.navigation.closed_text import ClosedText
from serena_central.projects.navigation.common_names import is_common
from serena_central.projects.navigation.consistency import Steady
from serena_central.projects.navigation.possible_references import BRIEF, Examined, Limits, PlaceInCode, Possible
from serena_central.projects.navigation.symbol_views import (
    DiagnosticView,
    HierarchyNode,
    PossibleReference,
    PossibleReferences,
    References,
    ReferenceView,
    Uses,
    view_of,
)
from serena_central.symbols.bodies import body_hash
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.symbols.indexing.indexer import Indexer

T = TypeVar("T")

Direction = Literal["incoming", "outgoing", "supertypes", "subtypes"]

UPWARD: frozenset[Direction] = frozenset({"incoming", "subtypes"})
"""Directions that lead to those who use a symbol, and so to other projects."""

CLOSED = "closed by a permission rule"
"""In place of a name or path in a file that may not be read."""

CONTEXT_LINES = 1
"""Lines shown before and after a reference."""

HOLDERS_S = 15.0
"""How long the symbols of files with references are waited for: the places are known, and told without them."""

POSSIBLE_LISTED = 20
"""Possible references that one answer names; the others are counted."""

NODES_LIMIT = 500
"""Symbols in one hierarchy answer: more can't be read, and a call graph may hold all of a project."""


class Foreign(NamedTuple):
    """A symbol, maybe of another project, as the server for the file `via` of this one is asked about it."""

    via: str
    path: Path
    position: Position
    name: str
    home: Path
    """The root of the project that it belongs to."""


class _Walk(NamedTuple):
    """One hierarchy: the file whose server is asked, and the root of the project that its symbol belongs to. `budget`
    holds how many symbols may still be shown, `node` makes one of them."""

    asked: str
    direction: Direction
    home: Path
    budget: list[int]
    node: Callable[[HierarchyItem], HierarchyNode]


class Navigation:
    """Questions about one project's symbols. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        indexer: Indexer,
        languages: ProjectLanguages,
        possible: Possible,
        access: Access = OPEN,
    ) -> None:
        self._access = access
        self._closed_text = ClosedText(
            root, hidden=tree.hidden, is_code=lambda path: languages.language_of(path) is not None
        )
        self._possible = possible
        self._root = root
        self._prefix = f"{root}/"
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._languages = languages
        self._steady = Steady(tree, index, indexer)

    async def hover(self, hit: Hit) -> str | None:
        """What the server shows about a symbol: signature and documentation, usually Markdown."""

        async def ask(hit: Hit) -> tuple[str | None, Collection[str]]:
            path, position = self._root / hit.path, hit.symbol.name_position
            return await self._languages.ask(hit.path, lambda server: server.hover(path, position)), ()

        shown, unsteady = await self._steady.ask(hit, ask)
        return None if unsteady or shown is None else await self._closed_text.without(hit.path, shown)

    async def references(self, hit: Hit, within: str = "") -> References:
        """Uses of a symbol, its own definition excepted, by file and position; possible ones at or below `within`."""

        async def ask(hit: Hit) -> tuple[References, Collection[str]]:
            shown, unopened = await self._candidates(hit.path, hit.symbol.name)
            uses, candidates = await self._named_and_candidates(hit, shown, unopened)
            examined = await self._possible.examine(hit, uses, candidates=candidates)
            places = [(path, span) for path, spans in uses.places.items() for span in spans]
            found_in = sorted({*places, *examined.references})
            references, gaps = await self.views([place for place in found_in if not is_definition(hit, *place)])
            possible = await self._possible_references(hit, examined, within)
            found = References(references, uses.outside, gaps, uses.note, self.caveat(hit), possible)
            return found, {*uses.places, *(place.path for place in (*examined.references, *examined.possible))}

        found, unsteady = await self._steady.ask(hit, ask)
        return msgspec.structs.replace(found, note=_joined(found.note, unsteady))

    async def uses(self, hit: Hit) -> Uses:
        """The bare places of a symbol's uses, its own definition excepted."""

        async def ask(hit: Hit) -> tuple[Uses, Collection[str]]:
            uses = await self._named(hit, *await self._candidates(hit.path, hit.symbol.name))
            return uses, uses.places

        found, unsteady = await self._steady.ask(hit, ask)
        return msgspec.structs.replace(found, note=_joined(found.note, unsteady))

    async def may_override(self, hit: Hit) -> bool:
        """Whether a base of a member's type has a member of its name, or is not known in this project."""
        return await self._possible.may_override(hit)

    async def is_registered(self, hit: Hit) -> bool:
        """Whether bases of a type are told of their subclasses: it may be used without being named."""
        return await self._possible.is_registered(hit)

    async def files_elsewhere(self, hit: Hit) -> list[str]:
        """Files that another language server, or none, reads, and that hold the name of a symbol as a word."""
        return await self._possible.files_elsewhere(hit)

    async def holding(self, paths: Collection[str], name: str) -> list[str]:
        """Those of some files that may hold a name as a word."""
        return await self._possible.holding(paths, name)

    def language_of(self, path: str) -> str | None:
        """The language of a root-relative path, if this project serves it."""
        return self._languages.language_of(path)

    async def named(self, places: Sequence[PlaceInCode]) -> list[str]:
        """Places as `path:line in name path`, lines 0-based."""
        await self._indexer.ensure({place.path for place in places})
        said: list[str] = []
        for path, span in places:
            holder = self.holder(path, span.start)
            said.append(f"{path}:{span.start.line0}" + (f" in {holder.name_path}" if holder else ""))
        return list(dict.fromkeys(said))

    async def examine(
        self, hit: Hit, known: Uses, limits: Limits = BRIEF, candidates: Candidates | None = None
    ) -> Examined:
        """What else may refer to a symbol than the uses that are `known`."""
        return await self._possible.examine(hit, known, limits, candidates)

    async def in_code(self, hit: Hit) -> Examined:
        """Places of a symbol's name in code, told without its language server."""
        return await self._possible.in_code(hit)

    async def _possible_references(self, hit: Hit, examined: Examined, within: str) -> PossibleReferences:
        def inside(places: Iterable[PlaceInCode]) -> list[PlaceInCode]:
            return [place for place in places if is_below(place.path, within)]

        possible = inside(examined.possible)
        first = [(place, examined.possible[place]) for place in possible[:POSSIBLE_LISTED]]
        await self._indexer.ensure({place.path for place, _ in first})
        shown: list[PossibleReference] = []
        for (path, span), why in first:
            holder = self.holder(path, span.start)
            shown.append(PossibleReference(path, span.start.line0, holder.name_path if holder else None, why))
        return PossibleReferences(
            hit.symbol.name,
            shown,
            len(possible),
            len(inside(examined.unexamined)),
            is_common(self._languages.language_of(hit.path), hit.symbol.name),
            len(inside(examined.strings)),
            len(inside(examined.comments)),
        )

    async def renaming(self, hit: Hit, new_name: str) -> tuple[Uses, WorkspaceEdit, Candidates]:
        """The bare places of a symbol's uses, what the server would change to rename it (nothing, if it can't, and
        maybe too little), and every place of its name. All are asked at once. Raises LanguageServerError."""
        shown, unopened = await self._candidates(hit.path, hit.symbol.name)
        uses, proposal = Uses(failed=True), WorkspaceEdit(unusable=True)
        candidates: Candidates = {}

        async def propose() -> None:
            nonlocal proposal
            proposal = await self._proposed(hit.path, hit.symbol.name_position, new_name, shown)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(propose)
                uses, candidates = await self._named_and_candidates(hit, shown, unopened)
        except BaseExceptionGroup as group:
            raise only_cause(group) from group
        return uses, proposal, candidates

    def caveat(self, hit: Hit) -> str | None:
        """What answers about a symbol may lack as long as the project doesn't say how it is built."""
        return self._languages.caveat(hit.path)

    async def _named(self, hit: Hit, candidates: Sequence[Path], unopened: str | None) -> Uses:
        path, position = self._root / hit.path, hit.symbol.name_position
        locations, note = await self._when_ready(
            hit.path, lambda server: server.references(path, position, candidates=candidates)
        )
        uses = self._uses(locations)
        return msgspec.structs.replace(uses, note=_joined(uses.note, note or unopened, await self._elsewhere(hit)))

    async def _named_and_candidates(
        self, hit: Hit, shown: Sequence[Path], unopened: str | None
    ) -> tuple[Uses, Candidates]:
        """What the server lists, and while it looks, every place of the name. Raises LanguageServerError."""
        uses = Uses(failed=True)
        candidates: Candidates = {}

        async def look() -> None:
            nonlocal candidates
            candidates = await self._possible.candidates(hit)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                uses = await self._named(hit, shown, unopened)
        except BaseExceptionGroup as group:
            raise only_cause(group) from group
        return uses, candidates

    async def renamed_with(self, path: str, position: Position, new_name: str) -> set[Position]:
        """Where a file would be changed if what stands at a position were renamed. Raises LanguageServerError."""
        proposal = await self._proposed(path, position, new_name, ())
        return {edit.range.start for edit in proposal.replacements.get(self._root / path, ())}

    def identifier(self, path: str) -> str:
        """LSP's identifier of a file's language; empty where this project serves none."""
        return self._languages.selection.identifier(path)

    async def _proposed(
        self, path: str, position: Position, new_name: str, candidates: Sequence[Path]
    ) -> WorkspaceEdit:
        absolute = self._root / path
        try:
            edit, _ = await self._when_ready(
                path, lambda server: server.rename(absolute, position, new_name, candidates=candidates)
            )
        except Unsupported:
            return WorkspaceEdit()
        return edit

    async def views(self, places: Iterable[tuple[str, Range]]) -> tuple[list[ReferenceView], list[Incompleteness]]:
        """Places in this project's files as uses, without those of files that are gone; what symbols lack."""
        places = list(places)
        texts = await self.readings({path for path, _ in places})
        gaps = await self._indexer.ensure(texts, most_s=HOLDERS_S)
        pace, views = Pace(), list[ReferenceView]()
        known = {path for path in texts if path in self._index}
        hashes: dict[tuple[str, int], dict[str, str]] = {}
        for file, span in places:
            if file not in texts:
                continue
            # Others run between two places; no file may leave the index before its symbols are named.
            if await pace.turn() and file in known and file not in self._index:
                await self._indexer.ensure([file])
            views.append(self._reference(file, span, texts[file], hashes))
        return views, gaps

    async def leads(self, path: str, position: Position) -> tuple[list[Location], str | None]:
        """Where the name at a position leads, in this project or elsewhere; a note. Raises LanguageServerError."""
        absolute = self._root / path
        return await self._when_ready(path, lambda server: server.definition(absolute, position))

    async def bare_uses(self, server: LanguageServer, hit: Hit, holders: Sequence[str], note: str | None) -> Uses:
        """References to a symbol as bare places, from a leased server; `holders` are the files that contain its name.

        `note` is what the server's answers lack in any case. Raises LanguageServerError, PathError.
        """
        shown, unopened = self._shown(hit.path, hit.symbol.name, holders)
        with answer_gaps.noting() as lacks:
            locations = await server.references(self._root / hit.path, hit.symbol.name_position, candidates=shown)
        uses = self._uses(locations)
        return msgspec.structs.replace(uses, note=_joined(uses.note, note or unopened or lacks()))

    def _uses(self, locations: Sequence[Location]) -> Uses:
        inside, outside = self._split(locations)
        places: dict[str, list[Range]] = {}
        for path, span in inside:
            places.setdefault(path, []).append(span)
        closed = sum(self.is_closed(place.path) for place in outside)
        note = (
            f"{_places(closed)} in files that permission rules close, and {_is(closed)} counted alone"
            if closed
            else None
        )
        return Uses(places, len(outside), note)

    async def readings(self, paths: Iterable[str]) -> dict[str, FileText]:
        """Files by path; without those that were deleted while they were asked about. Raises PathError.

        All in one turn of one thread: a turn for each costs as much as the reading.
        """
        asked = list(paths)

        def read_all() -> dict[str, FileText]:
            readings: dict[str, FileText] = {}
            for path in asked:
                with suppress(PathNotFound):
                    readings[path] = self._languages.read(self._root / path)
            return readings

        return await anyio.to_thread.run_sync(read_all, abandon_on_cancel=True)

    async def _candidates(self, path: str, name: str) -> tuple[list[Path], str | None]:
        """Files to show the server for `path` first, for those whose answers cover only what they were shown.

        And a note when the server takes fewer at once.
        """
        spec = self._languages.spec_for(path)
        if spec is None or not spec.documents.open_candidates:
            return [], None
        paths = [other for other in self._tree.files if self._languages.spec_for(other) is spec]
        found = await find_containing(self._root, paths, name, encoding=self._languages.encoding)
        return self._shown(path, name, found)

    def _shown(self, path: str, name: str, found: Sequence[str]) -> tuple[list[Path], str | None]:
        """Of the files that hold a name, those that the server for `path` must be shown."""
        spec = self._languages.spec_for(path)
        if spec is None or not spec.documents.open_candidates:
            return [], None
        note = None
        if len(found) > MAX_CANDIDATES and not spec.documents.settle_candidates:
            note = f"{name} occurs in {len(found)} files, of which {spec.title} loaded {MAX_CANDIDATES}"
        return [self._root / other for other in found], note

    def _reference(
        self, path: str, span: Range, read: FileText, known: dict[tuple[str, int], dict[str, str]]
    ) -> ReferenceView:
        """`known`: file and place of a symbol → its hashes, so that one that uses another often is hashed once."""
        holder, text = self.holder(path, span.start), read.text
        hashes: dict[str, str] = {}
        if holder is not None and self._index.of_text(path, read.stamp) is not None:
            if (path, holder.place) not in known:
                known[path, holder.place] = {holder.name_path: body_hash(text, holder.symbol)}
            hashes = known[path, holder.place]
        first, last = max(span.start.line0 - CONTEXT_LINES, 0), span.start.line0 + CONTEXT_LINES
        lines = [
            f"{'  >' if line0 == span.start.line0 else '...'}{line0:4}:{text.line(line0)}"
            for line0 in range(first, min(last, text.line_count - 1) + 1)
        ]
        return ReferenceView(
            path=path, holder=view_of(holder, hashes=hashes) if holder else None, range=span, context="\n".join(lines)
        )

    async def implementations(self, hit: Hit) -> tuple[list[Hit], int, str | None]:
        """Symbols that implement one; how many lie outside the project; a note."""

        async def ask(hit: Hit) -> tuple[tuple[list[Hit], int, str | None], Collection[str]]:
            path, position = self._root / hit.path, hit.symbol.name_position
            candidates, unopened = await self._candidates(hit.path, hit.symbol.name)
            locations, note = await self._when_ready(
                hit.path, lambda server: server.implementation(path, position, candidates=candidates)
            )
            hits, outside = await self._defined_at(locations)
            return (hits, outside, note or unopened), {found.path for found in hits}

        (hits, outside, note), unsteady = await self._steady.ask(hit, ask)
        return hits, outside, await self._with_blind_spots(hit, _joined(note, unsteady))

    async def implementations_of(self, foreign: Foreign) -> tuple[list[Location], str | None]:
        """Where a symbol of another project is implemented, in all that this project's server reads; a note."""
        candidates, unopened = await self._candidates(foreign.via, foreign.name)
        locations, note = await self._when_ready(
            foreign.via,
            lambda server: server.implementation(foreign.path, foreign.position, candidates=candidates),
        )
        return locations, note or unopened

    async def defined_at(self, locations: Sequence[Location]) -> list[Hit]:
        """Symbols of this project that stand at places."""
        return (await self._defined_at(locations))[0]

    async def definition(self, path: str, position: Position) -> tuple[list[Hit], list[Location], str | None]:
        """Symbols that are defined where the name at `position` leads; places outside the project; a note."""
        locations, note = await self.leads(path, position)
        inside, outside = self._split(locations)
        hits, _ = await self._defined_at([Location(self._root / file, span) for file, span in inside])
        shown = [place for place in outside if not self.is_closed(place.path)]
        if outside and not shown and not hits:
            raise PathDenied("What is named there is defined in a file that a permission rule closes.")
        return hits, shown, note

    async def _defined_at(self, locations: Sequence[Location]) -> tuple[list[Hit], int]:
        inside, outside = self._split(locations)
        await self._indexer.ensure({path for path, _ in inside})
        hits = [hit for path, span in inside if (hit := self.holder(path, span.start))]
        return list({(hit.path, hit.place): hit for hit in hits}.values()), len(outside)

    async def diagnostics(self, path: str) -> tuple[list[DiagnosticView], str | None]:
        """What the server complains about in a file, each with the symbol it lies in; a note."""
        absolute = self._root / path
        found, note = await self._when_ready(path, lambda server: server.diagnostics(absolute))
        await self._indexer.ensure([path])
        views: list[DiagnosticView] = []
        for diagnostic in found:
            message = await self._closed_text.without(path, diagnostic.message)
            shown = msgspec.structs.replace(diagnostic, message=message)
            views.append(DiagnosticView(shown, self._name_path(path, diagnostic)))
        return views, note

    def _name_path(self, path: str, diagnostic: Diagnostic) -> str | None:
        holder = self.holder(path, diagnostic.range.start)
        return holder.name_path if holder else None

    async def hierarchy(self, hit: Hit, direction: Direction, depth: int) -> tuple[list[HierarchyNode], str | None]:
        """Callers, callees, super- or subtypes of a symbol, `depth` levels deep; a note."""

        async def prepare(hit: Hit) -> tuple[tuple[list[HierarchyItem], str | None], Collection[str]]:
            place = Foreign(hit.path, self._root / hit.path, hit.symbol.name_position, hit.symbol.name, self._root)
            return await self._prepared(place, direction), ()

        (prepared, note), unsteady = await self._steady.ask(hit, prepare)
        note = _joined(note, unsteady)
        nodes = await self._trees(prepared, depth, _Walk(hit.path, direction, self._root, [NODES_LIMIT], self.node_of))
        if direction in UPWARD:
            note = await self._with_blind_spots(hit, note)
        return nodes, note

    async def hierarchy_of(
        self, foreign: Foreign, direction: Direction, depth: int, shown_by: "Navigation | None" = None
    ) -> tuple[list[HierarchyNode], str | None]:
        """As `hierarchy`, of a symbol of another project: what leads to symbols of this one, or of the project whose
        navigation are given."""
        prepared, note = await self._prepared(foreign, direction)
        node = (shown_by or self).node_of
        nodes = await self._trees(prepared, depth, _Walk(foreign.via, direction, foreign.home, [NODES_LIMIT], node))
        return _leading_inside(nodes), note

    async def _prepared(self, place: Foreign, direction: Direction) -> tuple[list[HierarchyItem], str | None]:
        def ask(server: LanguageServer) -> Awaitable[list[HierarchyItem]]:
            if direction in ("incoming", "outgoing"):
                return server.prepare_call_hierarchy(place.path, place.position)
            return server.prepare_type_hierarchy(place.path, place.position)

        try:
            return await self._when_ready(place.via, ask)
        except Unsupported as error:
            if direction == "subtypes":
                raise Unsupported(error.server, "type hierarchies", "Use find_implementations.") from error
            raise

    async def _trees(self, prepared: Sequence[HierarchyItem], depth: int, walk: _Walk) -> list[HierarchyNode]:
        return [node for item in prepared for node in await self._below(item, depth, (_key(item),), walk)]

    async def _below(
        self, item: HierarchyItem, depth: int, above: tuple[object, ...], walk: _Walk
    ) -> list[HierarchyNode]:
        asked, direction, home, budget, as_node = walk
        candidates: list[Path] = []
        if direction in UPWARD:
            candidates, _ = await self._candidates(asked, item.name)
        nodes: dict[object, HierarchyNode] = {}
        for next_item in await self._languages.ask(asked, lambda server: _step(server, item, direction, candidates)):
            if budget[0] <= 0:
                break
            node, key = as_node(next_item), _key(next_item)
            # A library's overloads are one to whoever only wants to know what is used of it.
            shown = (node.name, node.path) if node.outside else key
            if shown in nodes:
                continue
            budget[0] -= 1
            nodes[shown] = node
            node.cycle = key in above
            followed = not node.cycle and (not node.outside or next_item.path.is_relative_to(home))
            if depth > 1 and budget[0] > 0 and followed:
                node.below = await self._below(next_item, depth - 1, (*above, key), walk)
        return list(nodes.values())

    def node_of(self, item: HierarchyItem) -> HierarchyNode:
        """A symbol of a hierarchy as this project shows it: outside, unless its tree holds the file."""
        inside = self.inside(item.path)
        if inside is None and self.is_closed(item.path):
            return HierarchyNode(name=CLOSED, kind=item.kind, path=CLOSED, line=0, outside=True)
        return HierarchyNode(
            name=item.name,
            kind=item.kind,
            path=inside or str(item.path),
            line=item.selection.start.line0,
            outside=inside is None,
        )

    async def elsewhere(self, path: str, names: Collection[str]) -> dict[str, list[str]]:
        """Name → files that hold it, of modules that use the one of `path` and that its server was not asked about.

        Raises LanguageServerError.
        """
        folders = await self._languages.users_elsewhere(path, self._tree.files)
        if not folders:
            return {}
        below = tuple("" if folder == "." else f"{folder}/" for folder in folders)
        language, asked = self._languages.language_of, self._languages.workplace_of(path)
        paths = [
            other
            for other in self._tree.files
            if other.startswith(below)
            and language(other) == language(path)
            and self._languages.workplace_of(other) != asked
        ]
        found: dict[str, list[str]] = {}
        for other, words in (await anyio.to_thread.run_sync(words_of, self._root, paths, names)).items():
            for name in words.counts:
                found.setdefault(name, []).append(other)
        return found

    async def _elsewhere(self, hit: Hit) -> str | None:
        """Says if a symbol's name stands in modules that use its own, and that its server was not asked about."""
        found = await self.elsewhere(hit.path, {hit.symbol.name})
        return unjoined([hit.symbol.name], found[hit.symbol.name]) if found else None

    async def _with_blind_spots(self, hit: Hit, note: str | None) -> str | None:
        return _joined(note, await self._elsewhere(hit), self.caveat(hit))

    async def _when_ready(self, path: str, question: Callable[[LanguageServer], Awaitable[T]]) -> tuple[T, str | None]:
        """Asks once the server can be believed; a note when that wait was cut short."""

        async def ask(server: LanguageServer) -> tuple[T, str | None]:
            note = await server.ready()
            try:
                with answer_gaps.noting() as lacks:
                    answer = await question(server)
            except RequestFailed as error:
                if note is None or isinstance(error, Inapplicable):
                    raise
                # Likely the cause, and what can be done about.
                raise RequestFailed(error.server, error.method, error.code, f"{error.message}; {note}") from error
            return answer, note or lacks()

        return await self._languages.ask(path, ask)

    def holder(self, path: str, position: Position) -> Hit | None:
        """The innermost indexed symbol around a position."""
        if path not in self._index:
            return None
        file = self._index.file(path)
        place = file.enclosing(position)
        return None if place is None else Hit(path, file, place)

    def _split(self, locations: Sequence[Location]) -> tuple[list[tuple[str, Range]], list[Location]]:
        """Places in this project's files, by path and position, and those elsewhere."""
        inside: list[tuple[str, Range]] = []
        outside: list[Location] = []
        for location in locations:
            path = self.inside(location.path)
            if path is None:
                outside.append(location)
            else:
                inside.append((path, location.range))
        return sorted(set(inside)), outside

    def is_closed(self, path: Path) -> bool:
        """Whether rules keep a file of the root from being read, and named."""
        whole = str(path)
        return whole.startswith(self._prefix) and self._access.hides(whole.removeprefix(self._prefix))

    def inside(self, path: Path) -> str | None:
        """The root-relative form of a path that this project's tree holds."""
        # Thousands of places are asked about at a time, and both paths are normal: as strings in a tenth of the time.
        whole = str(path)
        inside = whole.removeprefix(self._prefix)
        return inside if inside != whole and inside in self._tree.files else None


def is_definition(hit: Hit, path: str, span: Range) -> bool:
    """Whether a place belongs to another definition of the same symbol: its name, or what stands before it, as
    `@size.setter` does."""
    others = (hit.file.symbols[other] for other in hit.file.others(hit.place)) if path == hit.path else ()
    return any(other.range.start <= span.start <= other.name_position for other in others)


def unjoined(names: Sequence[str], files: Sequence[str]) -> str:
    """What is said of names that also stand in files of modules whose servers were not asked."""
    subject = f"{names[0]} also occurs" if len(names) == 1 else f"{len(names)} names ({names[0]}, …) also occur"
    return (
        f"{subject} in {_counted(files)} of modules that depend on this one by path "
        "but are loaded separately; a go.work or Cargo workspace with both would join them"
    )


def _places(count: int) -> str:
    return "1 place lies" if count == 1 else f"{count} places lie"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _counted(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files ({files[0]}, …)"


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None


def _key(item: HierarchyItem) -> object:
    return item.name, item.path, item.selection


def _leading_inside(nodes: Sequence[HierarchyNode]) -> list[HierarchyNode]:
    """Without branches in which nothing is this project's own."""
    for node in nodes:
        node.below = _leading_inside(node.below)
    return [node for node in nodes if node.below or not node.outside]


async def _step(
    server: LanguageServer, item: HierarchyItem, direction: Direction, candidates: Sequence[Path]
) -> list[HierarchyItem]:
    match direction:
        case "incoming":
            return [call.item for call in await server.incoming_calls(item, candidates=candidates)]
        case "outgoing":
            return [call.item for call in await server.outgoing_calls(item)]
        case "supertypes":
            return await server.supertypes(item)
        case "subtypes":
            return await server.subtypes(item, candidates=candidates)


def is_below(path: str, folder: str) -> bool:
    """Whether a root-relative path is, or lies in, another; all lie in the root, which is empty."""
    return not folder or path == folder or path.startswith(f"{folder}/")
