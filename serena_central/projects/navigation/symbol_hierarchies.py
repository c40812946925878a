"""Call and type hierarchies: callers, callees, super- and subtypes of a symbol as trees."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from serena_central.core.errors import Unsupported
from serena_central.core.text import Position
from serena_central.lsp.answers import HierarchyItem
from serena_central.lsp.client import LanguageServer
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.consistency import Steady
from serena_central.projects.navigation.project_places import ProjectPlaces
from serena_central.projects.navigation.server_questions import ServerQuestions, joined
from serena_central.projects.navigation.symbol_views import HierarchyNode
from serena_central.symbols.index import Hit

Direction = Literal["incoming", "outgoing", "supertypes", "subtypes"]

UPWARD: frozenset[Direction] = frozenset({"incoming", "subtypes"})
"""Directions that lead to those who use a symbol, and so to other projects."""

CLOSED = "closed by a permission rule"
"""In place of a name or path in a file that may not be read."""

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


class SymbolHierarchies:
    """Hierarchies of one project's symbols. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        places: ProjectPlaces,
        languages: ProjectLanguages,
        questions: ServerQuestions,
        steady: Steady,
    ) -> None:
        self._root = root
        self._places = places
        self._languages = languages
        self._questions = questions
        self._steady = steady

    async def of(self, hit: Hit, direction: Direction, depth: int) -> tuple[list[HierarchyNode], str | None]:
        """Callers, callees, super- or subtypes of a symbol, `depth` levels deep; a note."""

        async def prepare(hit: Hit) -> tuple[tuple[list[HierarchyItem], str | None], Collection[str]]:
            place = Foreign(hit.path, self._root / hit.path, hit.symbol.name_position, hit.symbol.name, self._root)
            return await self._prepared(place, direction), ()

        (prepared, note), unsteady = await self._steady.ask(hit, prepare)
        note = joined(note, unsteady)
        nodes = await self._trees(prepared, depth, _Walk(hit.path, direction, self._root, [NODES_LIMIT], self.node_of))
        if direction in UPWARD:
            note = await self._questions.with_blind_spots(hit, note)
        return nodes, note

    async def of_foreign(
        self, foreign: Foreign, direction: Direction, depth: int, shown_by: "SymbolHierarchies | None" = None
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
            return await self._questions.when_ready(place.via, ask)
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
            candidates, _ = await self._questions.files_to_show(asked, item.name)
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
        inside = self._places.inside(item.path)
        if inside is None and self._places.is_closed(item.path):
            return HierarchyNode(name=CLOSED, kind=item.kind, path=CLOSED, line=0, outside=True)
        return HierarchyNode(
            name=item.name,
            kind=item.kind,
            path=inside or str(item.path),
            line=item.selection.start.line0,
            outside=inside is None,
        )


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
