"""Possible references: places whose code holds a symbol's name and that its language server does not list.

A server lists what it can resolve. It is silent about code that it takes for unreachable, about receivers whose type
nobody can infer, and about files that it could not read: an answer without them looks complete. So each place of the
name that is in no string or comment is asked about by itself: where does it lead? To the symbol: then it is a reference
after all. Elsewhere: then it is none, unless it calls the same method through a base or a derived class. Nowhere: then
it is a possible reference.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import LanguageServerError, PathError, RequestFailed, ServerBusy
from serena_central.core.text import Position, Range, Text
from serena_central.files.search import find_containing
from serena_central.files.tree import Change, FileTree
from serena_central.files.vocabulary import Vocabulary
from serena_central.lsp.answers import Location
from serena_central.lsp.client import LanguageServer
from serena_central.projects.kinship import Kinship
from serena_central.projects.languages import ProjectLanguages
from serena_central.projects.views import Uses
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.syntax.messages import Kind

AT_ONCE = 4
"""Questions in flight at one server."""

FILES_AT_ONCE = 20
"""Files that are parsed before their places are asked about."""

Why = Literal["unresolved", "same hierarchy", "not asked"]


class Limits(NamedTuple):
    """How many places are asked about, and for how many seconds."""

    places: int
    seconds: float


BRIEF = Limits(200, 1.0)
"""For an answer that somebody waits for: a place takes 1 to 10 ms."""

THOROUGH = Limits(5_000, 20.0)
"""Before code is deleted."""


FIRST_PLACES = 20
FIRST_S = 4.0
"""So many places are asked about even on a busy machine, where starting to parse takes a second, within this time."""


class Place(NamedTuple):
    """A word in a file, by its root-relative path."""

    path: str
    range: Range


class Examined(msgspec.Struct):
    """What else stands of a symbol's name in the code of its language.

    `references`: places that lead to the symbol although the server did not list them. `possible`: place → why it may
    be a reference. `unexamined`: places that were not looked at, for lack of time. `definitions`, `strings` and
    `comments`: where it names another symbol, or stands in such.
    """

    references: list[Place] = []
    possible: dict[Place, Why] = {}
    unexamined: list[Place] = []
    definitions: list[Place] = []
    strings: list[Place] = []
    comments: list[Place] = []
    code: dict[str, list[Place]] = {}
    """Path → its places in code, of the files that were parsed."""

    @property
    def is_clear(self) -> bool:
        """Whether no code but what the server listed can refer to the symbol."""
        return not (self.references or self.possible or self.unexamined)


class Possible:
    """Finds possible references in one project. Belongs to the event loop's thread; callers passed the barrier."""

    def __init__(self, root: Path, tree: FileTree, index: SymbolIndex, languages: ProjectLanguages) -> None:
        self._root = root
        self._tree = tree
        self._index = index
        self._languages = languages
        self._vocabulary = Vocabulary(root, languages.encoding)

    def changed(self, changes: Iterable[Change]) -> None:
        """Forgets files that are gone."""
        self._vocabulary.forget(change.path for change in changes if change.kind == "deleted")

    async def examine(self, hit: Hit, known: Uses, limits: Limits = BRIEF) -> Examined:
        """What stands of the name of `hit` besides the uses that are `known`.

        What a language server fails to say leaves a place a possible reference, and no answer fails for it.
        """
        found = Examined()
        word = _word(hit.symbol.name)
        if word is None:
            return found
        holders = await self._holders(hit)
        places = await anyio.to_thread.run_sync(self._unlisted, hit, word, known, holders, abandon_on_cancel=True)
        answers: dict[Place, Sequence[Location] | None] = {}
        todo = [Place(path, span) for path, spans in places.items() for span in spans]
        first = dict(islice(places.items(), FILES_AT_ONCE))
        with anyio.move_on_after(FIRST_S):
            await self._look(hit, first, answers, found, min(FIRST_PLACES, limits.places))
        with anyio.move_on_after(limits.seconds):
            await self._look(hit, places, answers, found, limits.places)
        settled = {*answers, *found.strings, *found.comments, *found.definitions}
        found.unexamined = [place for place in todo if place not in settled]
        kinship = Kinship(self._root, self._index, self._languages)
        for place, locations in answers.items():
            await self._judge(hit, place, locations, kinship, found)
        return found

    async def may_override(self, hit: Hit) -> bool:
        """Whether a base of a member's type has a member of its name, or is not known in this project."""
        return await Kinship(self._root, self._index, self._languages).may_override(hit)

    async def files_elsewhere(self, hit: Hit) -> list[str]:
        """Files that another language server, or none, reads, and that hold the name of `hit` as a word."""
        spec = self._languages.spec_for(hit.path)
        paths = [path for path in self._tree.files if self._languages.spec_for(path) is not spec]
        maybe = await self._vocabulary.holding(dict(self._tree.files), paths, hit.symbol.name)
        return sorted(await find_containing(self._root, maybe, hit.symbol.name, encoding=self._languages.encoding))

    async def _holders(self, hit: Hit) -> list[str]:
        """Files of the same language server that may hold the name, those near to the definition first."""
        spec = self._languages.spec_for(hit.path)
        paths = [path for path in self._tree.files if self._languages.spec_for(path) is spec]
        folder = hit.path.rpartition("/")[0]
        holders = await self._vocabulary.holding(dict(self._tree.files), paths, hit.symbol.name)
        return sorted(holders, key=lambda path: (path != hit.path, path.rpartition("/")[0] != folder, path))

    def _unlisted(self, hit: Hit, word: re.Pattern[str], known: Uses, holders: Iterable[str]) -> dict[str, list[Range]]:
        """Where the word stands, by file, without the definition and what is known. Reads; runs in a thread."""
        own = hit.symbol.name_position
        found: dict[str, list[Range]] = {}
        for path in holders:
            try:
                text = self._languages.read_text(self._root / path)
            except PathError:
                continue
            listed = {span.start for span in known.places.get(path, ())}
            if path == hit.path:
                listed.add(own)
            spans = [span for span in _matches(word, text) if span.start not in listed]
            if spans:
                found[path] = spans
        return found

    async def _look(
        self,
        hit: Hit,
        places: Mapping[str, Sequence[Range]],
        answers: dict[Place, Sequence[Location] | None],
        found: Examined,
        most: int,
    ) -> None:
        """Sorts places by what they stand in, and asks where those in code lead: some files at a time."""
        paths = list(places)
        while paths and len(answers) < most:
            batch, paths = paths[:FILES_AT_ONCE], paths[FILES_AT_ONCE:]
            for path in batch:
                if path not in found.code:
                    found.code[path] = await self._in_code(hit, path, places[path], found)
            code = [place for path in batch for place in found.code[path] if place not in answers]
            await self._ask(code[: most - len(answers)], answers)

    async def _in_code(self, hit: Hit, path: str, spans: Sequence[Range], found: Examined) -> list[Place]:
        """Those places of a file that are neither in a string nor in a comment, nor another symbol's definition."""
        kinds = await self._kinds(path, hit.symbol.name)
        defined = self._defined_in(path)
        code: list[Place] = []
        for span in spans:
            place, kind = Place(path, span), kinds.get(span.start, "code")
            if kind == "string":
                found.strings.append(place)
            elif kind == "comment":
                found.comments.append(place)
            elif span.start in defined:
                found.definitions.append(place)
            else:
                code.append(place)
        return code

    async def _kinds(self, path: str, name: str) -> Mapping[Position, Kind]:
        """Position → what the name stands in, where a grammar can tell."""
        try:
            return {one.range.start: one.kind for one in await self._languages.occurrences(path, name)}
        except (LanguageServerError, PathError):
            return {}

    def _defined_in(self, path: str) -> Collection[Position]:
        """Where symbols of a file have their names: definitions are no uses of others."""
        if path not in self._index:
            return ()
        return {symbol.name_position for symbol in self._index.file(path).symbols}

    async def _ask(self, places: Sequence[Place], answers: dict[Place, Sequence[Location] | None]) -> None:
        """Place → where it leads; None where nobody could say. Fills `answers` until it is cancelled."""
        for _, group in groupby(places, key=lambda place: self._languages.workplace_of(place.path)):
            batch = list(group)
            try:
                await self._languages.ask(batch[0].path, partial(self._ask_server, batch, answers))
            except LanguageServerError:
                answers |= {place: None for place in batch if place not in answers}

    async def _ask_server(
        self, places: Sequence[Place], answers: dict[Place, Sequence[Location] | None], server: LanguageServer
    ) -> None:
        queue = iter([place for place in places if place not in answers])
        failures: list[LanguageServerError] = []
        await server.ready()

        async def worker() -> None:
            for place in queue:
                try:
                    answers[place] = await server.definition(self._root / place.path, place.range.start)
                except (RequestFailed, ServerBusy, PathError):
                    answers[place] = None
                except LanguageServerError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(worker)
        if failures:
            raise failures[0]

    async def _judge(
        self, hit: Hit, place: Place, locations: Sequence[Location] | None, kinship: Kinship, found: Examined
    ) -> None:
        own = self._root / hit.path, hit.symbol.name_position
        if locations is None:
            found.possible[place] = "not asked"
        elif not locations:
            found.possible[place] = "unresolved"
        elif any((location.path, location.range.start) == own for location in locations):
            found.references.append(place)
        elif await self._among_kin(hit, place, locations, kinship):
            found.possible[place] = "same hierarchy"

    async def _among_kin(self, hit: Hit, place: Place, locations: Sequence[Location], kinship: Kinship) -> bool:
        for location in locations:
            target = self._defined_at(location)
            if target is not None and target.symbol.name == hit.symbol.name and await kinship.related(hit, target):
                return True
        return False

    def _defined_at(self, location: Location) -> Hit | None:
        """The indexed symbol whose name stands at a place."""
        if not location.path.is_relative_to(self._root):
            return None
        path = location.path.relative_to(self._root).as_posix()
        if path not in self._index:
            return None
        file = self._index.file(path)
        return next(
            (
                Hit(path, file, number)
                for number, symbol in enumerate(file.symbols)
                if symbol.name_position == location.range.start
            ),
            None,
        )


def _word(name: str) -> re.Pattern[str] | None:
    """A name as a whole word; None for one without a letter, such as an operator."""
    return re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])") if re.search(r"\w", name) else None


def _matches(word: re.Pattern[str], text: Text) -> Iterator[Range]:
    for match in word.finditer(text.content):
        yield Range(text.position(match.start()), text.position(match.end()))
