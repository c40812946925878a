"""The uses of a symbol whose name stands in few places: its server is asked where each of them leads.

For a list of references a server looks through all files that it knows, though it is known here which hold the name: of
Django ty takes 15 ms for the list, and a tenth of one to tell where a place leads. Both say the same where a symbol is
defined once, of servers whose entry says so (`Documents.places_tell_uses`). Whatever is not as simple as that is left
to the list.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from serena_central.core.text import Range
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Location
from serena_central.lsp.catalogue.spec import ServerSpec
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.candidates import CandidateSearch, Places
from serena_central.projects.navigation.leads import Answers, Leads
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.server_questions import ServerQuestions
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.symbols.index import Hit

MOST_FILES = 16
"""That may hold the name."""

MOST_PLACES = 64
"""Of the name. Some hundred take as long as the list of a small project."""

MOST_LINKS = 500
"""Symlinks in a root that are looked at, within a millisecond; of more the server may read any."""

STUBS = ".pyi"
"""A symbol of a stub is defined twice."""


class Told(NamedTuple):
    """The uses, and where each place of the name leads; None where the server has listed them."""

    uses: Uses
    leads: Answers | None = None


class UsesByPlace:
    """Of one project. Belongs to the event loop's thread; callers passed the barrier."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        languages: ProjectLanguages,
        questions: ServerQuestions,
        search: CandidateSearch,
        leads: Leads,
    ) -> None:
        self._root = root
        self._tree = tree
        self._languages = languages
        self._questions = questions
        self._search = search
        self._leads = leads

    def may_tell(self, hit: Hit) -> bool:
        """Whether it can for a symbol whose name stands in few places."""
        spec = self._languages.spec_for(hit.path)
        return (
            spec is not None
            and spec.documents.places_tell_uses
            and not hit.symbol.name.startswith("__")
            and hit.file.names.count(hit.symbol.name) == 1
            # The list also counts uses in files that are no part of this project, and lacks what git ignores.
            and not self._tree.leaves_out_more_than_git
            and not self._languages.orders.is_of_outer_project(spec)
            and not self._may_read_links(spec)
        )

    def _may_read_links(self, spec: ServerSpec) -> bool:
        links = list(islice(self._tree.links, MOST_LINKS + 1))
        return len(links) > MOST_LINKS or any(self._languages.spec_for(link) is spec for link in links)

    async def stands_in_few(self, hit: Hit) -> bool:
        """Whether few files may hold the name."""
        return await self._search.stands_in_few(hit, MOST_FILES)

    async def of(self, hit: Hit, candidates: Places) -> Told | None:
        """None where only the list can tell. `candidates`: every place of the symbol's name.

        Raises:
            LanguageServerError
        """
        name = hit.symbol.name_position
        places = sorted(PlaceInCode(path, span) for path, spans in candidates.items() for span in spans)
        itself = next((place for place in places if place.path == hit.path and place.range.start == name), None)
        workplace = self._languages.workplace_of(hit.path)
        if (
            itself is None
            or len(candidates) > MOST_FILES
            or len(places) > MOST_PLACES
            or any(path.endswith(STUBS) or self._languages.workplace_of(path) != workplace for path in candidates)
        ):
            return None
        leads: Answers = {}
        _, note = await self._questions.when_ready(hit.path, partial(self._leads.ask_server, places, leads))
        if note is not None:  # which only the list's answer can explain
            return None
        own, uses = self._root / hit.path, dict[str, list[Range]]()
        definitions = leads.pop(itself, None)
        if not definitions or any(one.path != own or one.range.start != name for one in definitions):
            return None  # the list also has the uses of what else it is: `from shop import *` and `net = 1`
        places.remove(itself)
        for place in places:
            locations = leads.get(place)
            if locations is None:
                return None
            is_use = any(one.path == own and one.range.start == name for one in locations)
            if len(locations) > 1 or (not is_use and self._may_define(hit, place, locations)):
                return None
            if is_use:
                uses.setdefault(place.path, []).append(place.range)
        return Told(Uses(uses), leads)

    def _may_define(self, hit: Hit, place: PlaceInCode, locations: Sequence[Location]) -> bool:
        """Whether a place that leads elsewhere may tell of another definition of the symbol: in its file a name may be
        imported and assigned, and a stub declares it."""
        own = self._root / hit.path
        return bool(locations) and (
            place.path == hit.path or any(one.path == own or one.path.suffix == STUBS for one in locations)
        )
