"""The references of a symbol: what its language server lists, what else may refer to it, and what a rename changes."""

import math
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from serena_central.core.errors import (
    DeadlineExceeded,
    InstallFailed,
    LanguageServerError,
    NoServerRoot,
    PathError,
    ServerBeingInstalled,
    ServerNotInstalled,
    SymbolUnknown,
    Unsupported,
    listed,
)
from serena_central.core.groups import only_cause, reported_failure
from serena_central.core.running_time import running_time
from serena_central.core.text import Position, Range
from serena_central.lsp.answers import Location, Replacement, WorkspaceEdit
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.readiness import noting_gaps
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.candidates import Places
from serena_central.projects.navigation.common_names import is_common
from serena_central.projects.navigation.consistency import Steady
from serena_central.projects.navigation.leads import Answers, Leads
from serena_central.projects.navigation.named_in_strings import named_in_strings
from serena_central.projects.navigation.places_in_code import PlaceInCode, is_imported
from serena_central.projects.navigation.possible_references import Examined, Possible
from serena_central.projects.navigation.project_places import ProjectPlaces, is_below, is_definition
from serena_central.projects.navigation.server_questions import ServerQuestions, joined
from serena_central.projects.navigation.symbol_views import PossibleReference, PossibleReferences, References, Uses
from serena_central.projects.navigation.uses_by_place import Told, UsesByPlace
from serena_central.symbols.index import Hit
from serena_central.symbols.indexing.indexer import Indexer

POSSIBLE_LISTED = 20
"""Possible references that one answer names; the others are counted."""

STRINGS_LISTED = 5
"""Strings that may mean the symbol, likewise."""


MANY = 1000
"""Places that are sorted in a thread."""

HEAD_START_S = 0.01
"""The places of a name are looked for when the server has been asked, so that it need not wait for that; or after so
many seconds, if it has to start first."""

BESIDE_S = 20.0
"""For the answer of a server about uses in its own files: what the symbol's own server lists is known without it."""

BESIDE_RENAMING_S = 60.0
"""The same before a rename, which is refused without that answer: the server may have to start and load first."""

BESIDE_AGAIN_S = 3.0
"""The same within LEFT_OPEN_S after a server has left such a question open, and half as long after each further one: a
deletion asks about all members of a class."""

LEFT_OPEN_S = 60.0

_NOT_THERE = (ServerNotInstalled, ServerBeingInstalled, InstallFailed, NoServerRoot, Unsupported)
"""Why a server is not asked at all, and calling again does not help."""


class _Beside(NamedTuple):
    """What servers say of uses in their own files, a note on what they do not, and whether one of them is there and
    failed."""

    locations: list[Location]
    note: str | None
    failed: bool


class _Patience:
    """How long servers are waited for that know uses in their own files. Kept for each kind of question: one that lists
    uses may hang when it renames, and one that was given up by a find may only have been starting."""

    def __init__(self) -> None:
        self._left_open: dict[tuple[str, str], tuple[float, float]] = {}
        """Server and question → when it began to leave such open, and for how long it is waited for since."""

    def forget(self) -> None:
        self._left_open.clear()

    @contextmanager
    def waiting(self, server: str, question: str, longest_s: float) -> Generator[None]:
        """Around the question, which may take so long, or what has proved worthwhile.

        Raises:
            DeadlineExceeded
        """
        key = server, question
        since, again_s = self._left_open.get(key, (-math.inf, 0.0))
        is_doubtful = running_time() - since < LEFT_OPEN_S
        patience_s = again_s if is_doubtful else longest_s
        try:
            with anyio.fail_after(patience_s):
                yield
        except TimeoutError as error:
            self._left_open[key] = (since, again_s / 2) if is_doubtful else (running_time(), BESIDE_AGAIN_S)
            raise DeadlineExceeded(
                f"the language server {server}", patience_s, "it may be starting, busy or hung"
            ) from error
        self._left_open.pop(key, None)


class RenameGround(NamedTuple):
    """The bare places of a symbol's uses; what its server would change to rename it, which may be too little, and is
    None of one that renames nothing at all; every place of its name in files of that server, and the other files that
    hold it."""

    uses: Uses
    proposal: WorkspaceEdit | None
    candidates: Places
    elsewhere: list[str]


class _Asked:
    """Whether the server has been asked for a symbol's references."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.set = self._event.set

    async def head_start(self) -> None:
        """Waits until the request is written, and no longer than HEAD_START_S."""
        with anyio.move_on_after(HEAD_START_S):
            await self._event.wait()
            await checkpoint()  # the event loop writes at the end of a turn


class _FilesOfServer(Container[str]):
    """Those of the server for a file, others that may use its symbols, and what it is configured by: whatever was asked
    place by place may depend on any of them, and some places may have been asked about before a change and some after
    it."""

    def __init__(self, languages: ProjectLanguages, path: str) -> None:
        self._languages = languages
        self._spec = languages.spec_for(path)

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        its = self._languages.spec_for(path)
        of_others = its is not None and self._spec is not None and its.knows_uses_of(self._spec.languages)
        return its is self._spec or of_others or self._languages.is_marker(path)


class SymbolReferences:
    """References to one project's symbols. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        places: ProjectPlaces,
        indexer: Indexer,
        languages: ProjectLanguages,
        questions: ServerQuestions,
        possible: Possible,
        by_place: UsesByPlace,
        leads: Leads,
        steady: Steady,
    ) -> None:
        self._root = root
        self._places = places
        self._indexer = indexer
        self._languages = languages
        self._questions = questions
        self._possible = possible
        self._by_place = by_place
        self._leads = leads
        self._steady = steady
        self._patience = _Patience()

    def ask_again(self) -> None:
        """Servers were started afresh: what they left open before says nothing of them."""
        self._patience.forget()

    async def of(self, hit: Hit, within: str = "") -> References:
        """Uses of a symbol, its own definition excepted, by file and position; possible ones at or below `within`."""
        is_first = True

        async def ask(hit: Hit) -> tuple[References, Container[str]]:
            nonlocal is_first
            may_tell, is_first = is_first and self._by_place.may_tell(hit), False  # while files change: by one answer
            shown, unopened = await self._questions.files_to_show(hit.path, hit.symbol.name)
            (uses, leads), candidates = await self._named_and_candidates(hit, shown, unopened, _Asked(), may_tell)
            examined = await self._possible.examine(hit, uses, candidates=candidates, leads=leads)
            found_in: Sequence[tuple[str, Range]] = [
                (path, span) for path, spans in uses.places.items() for span in spans
            ]  # in order, and each once
            if examined.references:
                found_in = sorted({*found_in, *examined.references})
            references, gaps = await self._places.views([place for place in found_in if not is_definition(hit, *place)])
            possible = await self._possible_references(hit, examined, within)
            caveat = joined(self._languages.caveat(hit.path), await self._possible.other_name(hit), uses.beside)
            found = References(references, uses.outside, gaps, uses.note, caveat, possible)
            if leads is not None or examined.references:
                return found, _FilesOfServer(self._languages, hit.path)
            return found, {*uses.places, *(place.path for place in examined.possible)}

        with self._languages.holding_texts():
            found, unsteady = await self._steady.ask(hit, ask)
        return msgspec.structs.replace(found, note=joined(found.note, unsteady))

    async def uses(self, hit: Hit) -> Uses:
        """The bare places of a symbol's uses, its own definition excepted."""

        async def ask(hit: Hit) -> tuple[Uses, Collection[str]]:
            uses = await self._named(hit, *await self._questions.files_to_show(hit.path, hit.symbol.name))
            return uses, uses.places

        found, unsteady = await self._steady.ask(hit, ask)
        return msgspec.structs.replace(found, note=joined(found.note, unsteady))

    async def bare_uses(self, server: LanguageServer, hit: Hit, holders: Sequence[str], note: str | None) -> Uses:
        """References to a symbol as bare places, from a leased server; `holders` are the files that contain its name.

        `note` is what the server's answers lack in any case.

        Raises:
            LanguageServerError, PathError
        """
        shown, unopened = self._questions.to_show(hit.path, hit.symbol.name, holders)
        with noting_gaps() as lacks:
            locations = await server.references(self._root / hit.path, hit.symbol.name_position, candidates=shown)
        uses = self._uses(locations)
        return msgspec.structs.replace(uses, note=joined(uses.note, note, unopened, lacks()))

    async def renaming(self, hit: Hit, new_name: str) -> RenameGround:
        """What a rename of a symbol goes by. All is asked at once.

        Raises:
            LanguageServerError
        """
        shown, unopened = await self._questions.files_to_show(hit.path, hit.symbol.name)
        told = Told(Uses(failed=True))
        candidates: Places = {}
        proposal: WorkspaceEdit | None = WorkspaceEdit(unusable=True)
        elsewhere: list[str] = []
        beside: dict[Path, list[Replacement]] = {}
        asked = _Asked()

        async def propose() -> None:
            nonlocal proposal
            proposal = await self.proposed(hit.path, hit.symbol.name_position, new_name, shown)

        async def propose_beside() -> None:
            nonlocal beside
            beside = await self._proposed_beside(hit, new_name)

        async def look_elsewhere() -> None:
            nonlocal elsewhere
            await asked.head_start()
            elsewhere = await self._possible.files_elsewhere(hit)

        try:
            with self._languages.holding_texts():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(propose)
                    tasks.start_soon(propose_beside)
                    tasks.start_soon(look_elsewhere)
                    may_tell = self._by_place.may_tell(hit)
                    told, candidates = await self._named_and_candidates(
                        hit, shown, unopened, asked, may_tell, is_renaming=True
                    )
        except BaseExceptionGroup as group:
            raise reported_failure(group) from group  # both questions may fail, of a file that no build has
        return RenameGround(told.uses, _with_replacements(proposal, beside), candidates, elsewhere)

    async def renamed_with(self, path: str, position: Position, new_name: str) -> set[Position]:
        """Where a file would be changed if what stands at a position were renamed.

        Raises:
            LanguageServerError
        """
        proposal = await self.proposed(path, position, new_name)
        edits = proposal.replacements.get(self._root / path, ()) if proposal else ()
        return {edit.range.start for edit in edits}

    async def proposed(
        self, path: str, position: Position, new_name: str, candidates: Sequence[Path] = ()
    ) -> WorkspaceEdit | None:
        """What the server would change to rename what stands at a position; None from one that renames nothing at all.

        Raises:
            LanguageServerError
        """
        absolute = self._root / path
        try:
            edit, _ = await self._questions.when_ready(
                path, lambda server: server.rename(absolute, position, new_name, candidates=candidates)
            )
        except Unsupported:
            return None
        return edit

    async def _named(
        self,
        hit: Hit,
        candidates: Sequence[Path],
        unopened: str | None,
        when_asked: Callable[[], None] = lambda: None,
        *,
        is_renaming: bool = False,
    ) -> Uses:
        path, position = self._root / hit.path, hit.symbol.name_position
        locations, note = await self._questions.when_ready(
            hit.path,
            lambda server: server.references(path, position, candidates=candidates, when_asked=when_asked),
        )
        beside = await self._beside(hit, is_renaming=is_renaming)
        locations = [*locations, *beside.locations]
        uses = await anyio.to_thread.run_sync(self._uses, locations) if len(locations) > MANY else self._uses(locations)
        return msgspec.structs.replace(
            uses,
            note=joined(uses.note, note, unopened, await self._questions.elsewhere_note(hit.path, {hit.symbol.name})),
            beside=beside.note,
            beside_failed=beside.failed,
        )

    async def _beside(self, hit: Hit, *, is_renaming: bool) -> _Beside:
        """Uses in files of other servers that know some of the symbol's, as components of Vue have of TypeScript's.
        Only servers with files that hold the name are asked, and none is waited for longer than has proved
        worthwhile."""
        name, failed = hit.symbol.name, False
        question, longest_s = ("rename", BESIDE_RENAMING_S) if is_renaming else ("find", BESIDE_S)
        found: list[Location] = []
        notes: list[str | None] = []
        for holders in await self._possible.holding_beside(hit):
            ask = self._listed_in if self._is_listed(hit, holders[0]) else self._leading_to
            try:
                with self._patience.waiting(self._server_of(holders[0]), question, longest_s):
                    locations, note = await ask(hit, holders)
            except (LanguageServerError, PathError, DeadlineExceeded) as error:
                failed = failed or not isinstance(error, _NOT_THERE)
                notes.append(f"{name} also occurs in {listed(holders)}, not looked into: {error}")
                continue
            notes.append(note)
            found += locations
        return _Beside(found, joined(*notes), failed)

    async def _proposed_beside(self, hit: Hit, new_name: str) -> dict[Path, list[Replacement]]:
        """What these servers would change in their own files to rename a symbol, as far as they know its uses by
        themselves: where `export { a as b }` keeps a name for others, they tell which place means which."""
        path, position = self._root / hit.path, hit.symbol.name_position
        found: dict[Path, list[Replacement]] = {}
        for holders in await self._possible.holding_beside(hit):
            if not self._is_listed(hit, holders[0]):
                continue
            shown, name = [self._root / holder for holder in holders], self._server_of(holders[0])
            # Else they are references that the rename leaves out.
            with suppress(LanguageServerError, PathError, DeadlineExceeded):
                with self._patience.waiting(name, "proposal", BESIDE_RENAMING_S):
                    edit, _ = await self._questions.when_ready(
                        holders[0],
                        lambda server, shown=shown: server.rename(path, position, new_name, candidates=shown),
                    )
                found |= {file: edits for file, edits in edit.replacements.items() if file in shown}
        return found

    def _server_of(self, path: str) -> str:
        spec = self._languages.spec_for(path)
        return spec.name if spec is not None else ""

    def _is_listed(self, hit: Hit, path: str) -> bool:
        """Whether the server of a file lists uses of such symbols there."""
        spec = self._languages.spec_for(path)
        return spec is not None and self._languages.language_of(hit.path) in spec.reads

    async def _listed_in(self, hit: Hit, files: Sequence[str]) -> tuple[list[Location], str | None]:
        """Uses in some files, of one server, as it lists them, or as its places lead in projects that it does not list;
        a note. One that knows the symbol lists its definition: an answer without that proves nothing.

        Raises:
            LanguageServerError
        """
        spec = self._languages.spec_for(files[0])
        apart = self._possible.in_other_projects(hit.path, files, spec.lists_within) if spec is not None else []
        uses: list[Location] = []
        note = more = None
        if len(apart) < len(files):
            path, position = self._root / hit.path, hit.symbol.name_position
            shown = [self._root / file for file in files]
            locations, note = await self._questions.when_ready(
                files[0],
                lambda server: server.references(path, position, include_declaration=True, candidates=shown),
            )
            uses = [location for location in locations if location.path in shown]
            if not uses and not any(place.path == path and place.range.contains(position) for place in locations):
                raise SymbolUnknown(self._server_of(files[0]), hit.name_path, f"{hit.path}:{hit.symbol.name_line}")
        listed_in = {use.path for use in uses}
        if unlisted := [file for file in apart if self._root / file not in listed_in]:
            found, more = await self._leading_to(hit, unlisted)
            uses += found
        return uses, joined(note, more)

    async def _leading_to(self, hit: Hit, files: Sequence[str]) -> tuple[list[Location], str | None]:
        """The same of a server that lists none, but says where places lead: some to the import that names the symbol,
        such as `{ name }`. One that says so of no place, not even of an import, proves nothing.

        Raises:
            LanguageServerError
        """
        spec, leads = self._languages.spec_for(files[0]), Answers()
        places = await self._possible.words(files, hit.symbol.name, spec.use_prefix if spec is not None else "")
        _, note = await self._questions.when_ready(files[0], partial(self._leads.ask_server, places, leads))
        meant = {(self._root / hit.path, hit.symbol.name_position)}
        direct = _leading_to(leads, meant)
        doubtful = direct or ([] if any(leads.values()) else places)
        imported = await self._imported(doubtful)
        if imported and not direct:
            first = imported[0]
            raise SymbolUnknown(self._server_of(first.path), hit.symbol.name, f"{first.path}:{first.range.start.line0}")
        meant |= {(self._root / place.path, place.range.start) for place in imported}
        return [Location(self._root / place.path, place.range) for place in _leading_to(leads, meant)], note

    async def _imported(self, places: Collection[PlaceInCode]) -> list[PlaceInCode]:
        """Those of some places that an import names."""
        read = await self._places.readings({place.path for place in places})
        return [
            place for place in places if place.path in read and is_imported(read[place.path].text, place.range.start)
        ]

    async def _named_and_candidates(
        self,
        hit: Hit,
        shown: Sequence[Path],
        unopened: str | None,
        asked: "_Asked",
        may_tell: bool,
        *,
        is_renaming: bool = False,
    ) -> tuple[Told, Places]:
        """What the server lists, and while it looks, every place of the name; or, if places `may_tell`, only these, and
        where they lead.

        Raises:
            LanguageServerError
        """
        found, told = Told(Uses(failed=True)), None
        candidates: dict[str, Sequence[Range]] = {}
        are_few = False
        counted, searched = anyio.Event(), anyio.Event()

        async def look() -> None:
            nonlocal are_few
            are_few = may_tell and await self._by_place.stands_in_few(hit)
            counted.set()
            if not are_few:
                await asked.head_start()
            candidates.update(await self._possible.candidates(hit))
            searched.set()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                if may_tell:
                    with anyio.move_on_after(HEAD_START_S):  # this name may be the first of all that is looked for
                        await counted.wait()
                if are_few:
                    await searched.wait()
                    told = await self._by_place.of(hit, candidates)
                if told is None:
                    found = Told(await self._named(hit, shown, unopened, asked.set, is_renaming=is_renaming))
                else:
                    asked.set()
                    note = await self._questions.elsewhere_note(hit.path, {hit.symbol.name})
                    found = Told(msgspec.structs.replace(told.uses, note=note), told.leads)
        except BaseExceptionGroup as group:
            raise only_cause(group) from group
        return found, candidates

    def _uses(self, locations: Sequence[Location]) -> Uses:
        inside, outside = self._places.split(locations)
        places: dict[str, list[Range]] = {}
        for path, span in inside:
            places.setdefault(path, []).append(span)
        closed = sum(self._places.is_closed(place.path) for place in outside)
        note = (
            f"{_places(closed)} in files that permission rules close, and {_is(closed)} counted alone"
            if closed
            else None
        )
        return Uses(places, len(outside), note)

    async def _possible_references(self, hit: Hit, examined: Examined, within: str) -> PossibleReferences:
        def inside(places: Iterable[PlaceInCode]) -> list[PlaceInCode]:
            return [place for place in places if is_below(place.path, within)]

        possible = inside(examined.possible)
        first = [(place, examined.possible[place]) for place in possible[:POSSIBLE_LISTED]]
        await self._indexer.ensure({place.path for place, _ in first})
        strings = sorted(chain(*await named_in_strings(self._places, hit, inside(examined.strings))))
        shown: list[PossibleReference] = []
        for (path, span), why in first:
            holder = self._places.holder(path, span.start)
            shown.append(PossibleReference(path, span.start.line0, holder.name_path if holder else None, why))
        return PossibleReferences(
            hit.symbol.name,
            shown,
            len(possible),
            len(inside(examined.unexamined)),
            is_common(self._languages.language_of(hit.path), hit.symbol.name),
            await self._places.named(strings[:STRINGS_LISTED]),
            len(strings),
        )


def _leading_to(leads: Answers, meant: Container[tuple[Path, Position]]) -> list[PlaceInCode]:
    """Those of some places that lead to where one of the names that are meant stands."""
    return [
        place
        for place, targets in leads.items()
        if any((target.path, target.range.start) in meant for target in targets or ())
    ]


def _with_replacements(proposal: WorkspaceEdit | None, more: Mapping[Path, list[Replacement]]) -> WorkspaceEdit | None:
    """What a server proposes, if it renames at all, and more."""
    if proposal is None:
        return None
    return msgspec.structs.replace(proposal, replacements={**proposal.replacements, **more})


def _places(count: int) -> str:
    return "1 place lies" if count == 1 else f"{count} places lie"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
