"""Where places in code lead: asked of their language servers, and remembered until something changes."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import anyio

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.lru import Lru
from serena_central.files.stamp import Stamp
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Location
from serena_central.lsp.client import LanguageServer, Lead
from serena_central.lsp.readiness import noting_gaps
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.places_in_code import PlaceInCode

AT_ONCE = 4
"""Files that one server is asked about at a time."""

PLACES_AT_ONCE = 16
"""Places of a file that are asked about in one go: where the time ends, their answers are lost together."""

KEPT_PLACES = 2_000
"""Of which it is remembered where in the project they lead, until something changes: 1 to 2 MB."""

KEPT_DECLARATIONS = 20_000
"""The same of methods and what they override: of that many names the questions take 20 minutes, in many calls."""

Answers = dict[PlaceInCode, Sequence[Location] | None]
"""Place → where it leads; None if the server does not say."""


class Leads:
    """Of one project. Belongs to the event loop's thread; callers passed the barrier."""

    def __init__(self, root: Path, tree: FileTree, languages: ProjectLanguages, feature: Lead = "definition") -> None:
        self._root = root
        self._prefix = f"{root}/"
        self._tree = tree
        self._languages = languages
        self._feature: Lead = feature
        kept = KEPT_DECLARATIONS if feature == "declaration" else KEPT_PLACES
        self._leads: Lru[PlaceInCode, tuple[int, Sequence[Location]]] = Lru(kept)
        """Place → of how many changes that was true, and where it leads."""

    async def ask(self, places: Sequence[PlaceInCode], answers: Answers) -> None:
        """Fills `answers` until it is cancelled."""
        answers |= self._known(places)
        unknown = [place for place in places if place not in answers]
        for _, group in groupby(unknown, key=lambda place: self._languages.workplace_of(place.path)):
            batch = list(group)
            try:
                await self._languages.ask(batch[0].path, partial(self._ask_unknown, batch, answers))
            except LanguageServerError:
                answers |= {place: None for place in batch if place not in answers}

    async def ask_server(self, places: Sequence[PlaceInCode], answers: Answers, server: LanguageServer) -> None:
        """The same of places that one server reads; what is remembered is not asked.

        Raises:
            LanguageServerError
        """
        answers |= self._known(places)
        await self._ask_unknown([place for place in places if place not in answers], answers, server)

    async def _ask_unknown(self, places: Sequence[PlaceInCode], answers: Answers, server: LanguageServer) -> None:
        todo = groupby((place for place in places if place not in answers), key=lambda place: place.path)
        queue = iter([(path, some) for path, group in todo for some in _pieces(list(group))])
        failures: list[LanguageServerError] = []
        is_unready = await server.ready() is not None

        async def worker() -> None:
            for path, some in queue:
                changes = self._languages.changes
                try:
                    with noting_gaps() as lacks:
                        starts = [place.range.start for place in some]
                        found = await server.definitions(self._root / path, starts, self._feature)
                    answers.update(zip(some, found, strict=True))
                    if not is_unready and lacks() is None:
                        self._remember(changes, zip(some, found, strict=True))
                except PathError:
                    answers.update(dict.fromkeys(some))
                except LanguageServerError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(worker)
        if failures:
            raise failures[0]

    def _known(self, places: Iterable[PlaceInCode]) -> dict[PlaceInCode, Sequence[Location]]:
        """Where places lead of which the server has said so since the last change."""
        known: dict[PlaceInCode, Sequence[Location]] = {}
        for path, group in groupby(places, key=lambda place: place.path):
            lead = {place: self._leads.get(place) for place in group}
            true = {place: told[1] for place, told in lead.items() if told and told[0] == self._languages.changes}
            if true and self._is_as_seen(path):
                known |= true
        return known

    def _is_as_seen(self, path: str) -> bool:
        """Whether a file is what the tree has seen: a write through a hard link is not heard of."""
        try:
            return Stamp.of((self._root / path).stat()) == self._tree.files.get(path)
        except OSError:
            return False

    def _remember(self, changes: int, leads: Iterable[tuple[PlaceInCode, Sequence[Location] | None]]) -> None:
        """`changes`: of the project, before the server was asked. What is unresolved, or leads out of the project, is
        asked about each time: packages that are installed meanwhile are no change of the project's. By them, no method
        comes to override one of the project."""
        for place, locations in leads:
            if locations is None:
                continue
            if self._feature == "declaration" or (locations and all(map(self._is_inside, locations))):
                self._leads[place] = changes, locations

    def _is_inside(self, location: Location) -> bool:
        return str(location.path).removeprefix(self._prefix) in self._tree.files


def _pieces(places: Sequence[PlaceInCode]) -> Iterator[Sequence[PlaceInCode]]:
    for start in range(0, len(places), PLACES_AT_ONCE):
        yield places[start : start + PLACES_AT_ONCE]
