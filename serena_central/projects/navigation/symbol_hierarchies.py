"""Call and type hierarchies: callers, callees, super- and subtypes of a symbol as trees."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from serena_central.core.errors import Unsupported
from serena_central.core.text import Position
from serena_central.lsp.answers import HierarchyItem
from serena_central.lsp.client import LanguageServer
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

GAPS_SHOWN = 3
"""Different gaps that are named: each symbol of a hierarchy is asked about, and each answer may have one of its own."""


class Foreign(NamedTuple):
    """A symbol, maybe of another project, as the server for the file `via` of this one is asked about it."""

    via: str
    path: Path
    position: Position
    name: str
    home: Path
    """The root of the project that it belongs to."""


class _Walk(msgspec.Struct):
    """One hierarchy: the file whose server is asked, and the root of the project that its symbol belongs to; `node`
    makes a symbol as it is shown."""

    asked: str
    direction: Direction
    home: Path
    node: Callable[[HierarchyItem], HierarchyNode]
    left: int = NODES_LIMIT
    """How many symbols may still be shown."""
    names: set[str] = set()
    """Of the symbols that the server was asked about."""
    gaps: list[str | None] = []
    """What its answers may lack."""

    def note(self) -> str | None:
        """The first gaps, and how many there are besides."""
        gaps = list(dict.fromkeys(filter(None, self.gaps)))
        more = len(gaps) - GAPS_SHOWN
        return joined(*gaps[:GAPS_SHOWN], f"and {more} more such gaps" if more > 0 else None)


class SymbolHierarchies:
    """Hierarchies of one project's symbols. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        places: ProjectPlaces,
        questions: ServerQuestions,
        steady: Steady,
    ) -> None:
        self._root = root
        self._places = places
        self._questions = questions
        self._steady = steady

    async def of(self, hit: Hit, direction: Direction, depth: int) -> tuple[list[HierarchyNode], str | None]:
        """Callers, callees, super- or subtypes of a symbol, `depth` levels deep; a note."""

        async def prepare(hit: Hit) -> tuple[tuple[list[HierarchyItem], str | None], Collection[str]]:
            place = Foreign(hit.path, self._root / hit.path, hit.symbol.name_position, hit.symbol.name, self._root)
            return await self._prepared(place, direction), ()

        (prepared, note), unsteady = await self._steady.ask(hit, prepare)
        walk = _Walk(hit.path, direction, self._root, self.node_of, gaps=[note, unsteady])
        nodes = await self._trees(prepared, depth, walk)
        note = walk.note()
        if direction in UPWARD:
            note = await self._questions.with_blind_spots(hit.path, {hit.symbol.name, *walk.names}, note)
        return nodes, note

    async def of_foreign(
        self, foreign: Foreign, direction: Direction, depth: int, shown_by: "SymbolHierarchies | None" = None
    ) -> tuple[list[HierarchyNode], str | None]:
        """As `of`, of a symbol of another project: what leads to symbols of this one, or of the project that `shown_by`
        is of."""
        prepared, note = await self._prepared(foreign, direction)
        node = (shown_by or self).node_of
        walk = _Walk(foreign.via, direction, foreign.home, node, gaps=[note])
        nodes = await self._trees(prepared, depth, walk)
        return _leading_inside(nodes), walk.note()

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
        nodes: dict[object, HierarchyNode] = {}
        for next_item in await self._next_to(item, walk):
            if walk.left <= 0:
                break
            node, key = walk.node(next_item), _key(next_item)
            # A library's overloads are one to whoever only wants to know what is used of it.
            shown = (node.name, node.path) if node.outside else key
            if shown in nodes:
                continue
            walk.left -= 1
            nodes[shown] = node
            node.cycle = key in above
            followed = not node.cycle and (not node.outside or next_item.path.is_relative_to(walk.home))
            if depth > 1 and walk.left > 0 and followed:
                node.below = await self._below(next_item, depth - 1, (*above, key), walk)
        return list(nodes.values())

    async def _next_to(self, item: HierarchyItem, walk: _Walk) -> list[HierarchyItem]:
        """The symbols one step from another; what the answer may lack is added to the walk's gaps."""
        candidates: list[Path] = []
        unopened = None
        if walk.direction in UPWARD:
            candidates, unopened = await self._questions.files_to_show(walk.asked, item.name)
        found, note = await self._questions.when_ready(
            walk.asked, lambda server: _step(server, item, walk.direction, candidates)
        )
        walk.names.add(item.name)
        walk.gaps += [unopened, note]
        return found

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
