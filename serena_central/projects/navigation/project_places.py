"""Places that language servers report, as files and symbols of one project."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio

from serena_central.core.errors import PathNotFound
from serena_central.core.pacing import Pace
from serena_central.core.text import Position, Range
from serena_central.files.boundary import Access
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Location
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.symbol_views import ReferenceView, SymbolView, view_of
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.symbol import FileSymbols, hash_of

CONTEXT_LINES = 1
"""Lines shown before and after a reference."""

NO_SYMBOLS = FileSymbols(())

HOLDERS_S = 15.0
"""How long the symbols of files with references are waited for: the places are known, and returned without them."""


class ReferenceTexts(NamedTuple):
    """The texts that some references are places in, to show them."""

    texts: Mapping[str, FileText]
    indexed: Collection[str]
    """Files whose symbols are known as they stand in these texts."""
    changed: Collection[str]
    """Files that are not any more as they were when the references were found; some may be gone."""

    def lines_around(self, reference: ReferenceView) -> str:
        """A reference's line, marked, and those before and after it."""
        if reference.path not in self.texts:
            return ""
        text, at = self.texts[reference.path].text, reference.range.start.line0
        return "\n".join(
            f"{'  >' if line0 == at else '...'}{line0:4}:{text.line(line0)}"
            for line0 in range(max(at - CONTEXT_LINES, 0), min(at + CONTEXT_LINES, text.line_count - 1) + 1)
        )

    def body_hash(self, reference: ReferenceView) -> str | None:
        """Of the symbol that holds a reference, where there is one and its body is known."""
        if reference.holder is None or reference.path not in self.indexed or reference.path in self.changed:
            return None
        return hash_of(self.texts[reference.path].text.slice(reference.holder.range))


class ProjectPlaces:
    """Maps places to one project's files and symbols. Belongs to the event loop's thread."""

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
        self._prefix = f"{root}/"
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._languages = languages
        self._access = access

    def absolute(self, path: str) -> Path:
        return self._root / path

    def inside(self, path: Path) -> str | None:
        """The root-relative form of a path that this project's tree holds."""
        # Thousands of places are asked about at a time, and both paths are normal: as strings in a tenth of the time.
        whole = str(path)
        inside = whole.removeprefix(self._prefix)
        return inside if inside != whole and inside in self._tree.files else None

    def language_of(self, path: str) -> str | None:
        """The language of a root-relative path."""
        return self._languages.language_of(path)

    def is_closed(self, path: Path) -> bool:
        """Whether rules keep a file of the root from being read, and named."""
        whole = str(path)
        return whole.startswith(self._prefix) and self._access.hides(whole.removeprefix(self._prefix))

    def holder(self, path: str, position: Position) -> Hit | None:
        """The innermost indexed symbol around a position."""
        if path not in self._index:
            return None
        file = self._index.file(path)
        place = file.enclosing(position)
        return None if place is None else Hit(path, file, place)

    async def named(self, places: Sequence[PlaceInCode]) -> list[str]:
        """Places as `path:line in name path`, lines 0-based."""
        await self._indexer.ensure({place.path for place in places})
        said: list[str] = []
        for path, span in places:
            holder = self.holder(path, span.start)
            said.append(f"{path}:{span.start.line0}" + (f" in {holder.name_path}" if holder else ""))
        return list(dict.fromkeys(said))

    async def readings(self, paths: Iterable[str]) -> dict[str, FileText]:
        """Files by path; without those that were deleted while they were asked about.

        All in one turn of one thread, where they are not at hand: a turn for each costs as much as the reading.

        Raises:
            PathError
        """
        asked = list(paths)

        def read_all() -> dict[str, FileText]:
            readings: dict[str, FileText] = {}
            for path in asked:
                with suppress(PathNotFound):
                    readings[path] = self._languages.read(self._root / path)
            return readings

        if self._languages.are_at_hand([self._root / path for path in asked]):
            return read_all()
        return await anyio.to_thread.run_sync(read_all, abandon_on_cancel=True)

    async def views(self, places: Iterable[tuple[str, Range]]) -> tuple[list[ReferenceView], list[Incompleteness]]:
        """Places in this project's files, ordered by path and position, as uses, without those of files that are gone;
        what symbols lack."""
        spans: dict[str, list[Range]] = {}
        for path, span in places:
            if path in self._tree.files:
                spans.setdefault(path, []).append(span)
        gaps = await self._indexer.ensure(spans, most_s=HOLDERS_S)
        pace, views = Pace(), list[ReferenceView]()
        known = {path for path in spans if path in self._index}
        for path in spans:
            # Others run between two places; no file may leave the index before its symbols are named.
            if await pace.turn() and path in known and path not in self._index:
                await self._indexer.ensure([path])
            if (stamp := self._tree.files.get(path)) is None:
                continue
            for view in self._references_in(path, spans[path], stamp):
                views.append(view)
                await pace.turn()
        return views, gaps

    def _references_in(self, path: str, spans: Sequence[Range], stamp: Stamp) -> Iterator[ReferenceView]:
        """The symbols are those that the index has of the file when the first view is made."""
        file = self._index.file(path) if path in self._index else NO_SYMBOLS
        holders = dict[int | None, SymbolView | None]({None: None})
        for span, place in zip(spans, file.enclosing_each([span.start for span in spans]), strict=True):
            if place is not None and place not in holders:
                holders[place] = view_of(Hit(path, file, place))
            yield ReferenceView(path=path, holder=holders[place], range=span, stamp=stamp)

    async def texts(self, references: Iterable[ReferenceView]) -> ReferenceTexts:
        """What is needed to show references: these, and no others of an answer.

        Raises:
            PathError
        """
        stamps = {reference.path: reference.stamp for reference in references}
        texts = await self.readings(stamps)
        entries = {path: self._index.entry(path) for path in texts}
        indexed = {path for path, entry in entries.items() if entry is not None and entry.stamp == texts[path].stamp}
        changed = {path for path, stamp in stamps.items() if path not in texts or texts[path].stamp != stamp}
        return ReferenceTexts(texts, indexed, changed)

    def split(self, locations: Sequence[Location]) -> tuple[list[tuple[str, Range]], list[Location]]:
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

    async def defined_at(self, locations: Sequence[Location]) -> list[Hit]:
        """Symbols of this project that stand at places."""
        return (await self.symbols_at(locations))[0]

    async def symbols_at(self, locations: Sequence[Location]) -> tuple[list[Hit], int]:
        inside, outside = self.split(locations)
        await self._indexer.ensure({path for path, _ in inside})
        hits = [hit for path, span in inside if (hit := self.holder(path, span.start))]
        return list({(hit.path, hit.place): hit for hit in hits}.values()), len(outside)


def is_definition(hit: Hit, path: str, span: Range) -> bool:
    """Whether a place belongs to another definition of the same symbol: its name, or what stands before it, as
    `@size.setter` does."""
    others = (hit.file.symbols[other] for other in hit.file.others(hit.place)) if path == hit.path else ()
    return any(other.range.start <= span.start <= other.name_position for other in others)


def is_below(path: str, folder: str) -> bool:
    """Whether a root-relative path is, or lies in, another; all lie in the root, which is empty."""
    return not folder or path == folder or path.startswith(f"{folder}/")
