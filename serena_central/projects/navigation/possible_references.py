"""Possible references: places in code with a symbol's name that its language server does not list.

A server lists what it can resolve. It is silent about code that it takes for unreachable, about receivers whose type
nobody can infer, and about files that it could not read: an answer without them looks complete. So each place of the
name that is in no string or comment is asked about by itself: where does it lead? To the symbol: then it is a reference
after all. Elsewhere: then it is none, unless it calls the same method through a base or a derived class. Nowhere: then
it is a possible reference.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
import msgspec

from serena_central.core.errors import FileChanged, LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Position
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Location
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.candidates import Candidate, Candidates, CandidateSearch, Places
from serena_central.projects.navigation.fixtures import Fixtures
from serena_central.projects.navigation.language_rules import Rules, rules_for
from serena_central.projects.navigation.leads import Answers, Leads
from serena_central.projects.navigation.places_in_code import IndexedPlaces, PlaceInCode
from serena_central.projects.navigation.same_hierarchy import SameHierarchy, type_of
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import TYPES
from serena_central.symbols.syntax.messages import Occurrence

FILES_AT_ONCE = 20
"""Files that are parsed before their places are asked about."""

MOST_FILES = 100
"""Files that are parsed to list places of a name without a language server."""

Why = Literal["unresolved", "same hierarchy", "not asked"]


class Limits(NamedTuple):
    """How many places are asked about, and for how many seconds."""

    places: int
    seconds: float


BRIEF = Limits(200, 1.0)
"""For an answer that somebody waits for: a place takes 1 to 10 ms."""

THOROUGH = Limits(5_000, 20.0)
"""Before code is deleted."""


SYNTAX_S = 3.0
"""For sorting places by syntax alone, where the server cannot know the build and did not come to them in time."""

SYMBOLS_S = 5.0
"""For the symbols of files that the index lacks still: a parser reads hundreds a second."""

_LISTING = "__subclasses__"
"""What asks a class of Python for those that derive from it."""

FIRST_PLACES = 20
FIRST_S = 4.0
"""So many places are asked about even on a busy machine, where starting to parse takes a second, within this time."""


class Examined(msgspec.Struct):
    """What else stands of a symbol's name in the code of its language.

    `references`: places that lead to the symbol although the server did not list them. `possible`: place → why it may
    be a reference. `elsewhere`: place → what else it leads to. `patterns`: those that declare a variable of the same
    name as the field that it takes its value from. `unexamined`: places that were not looked at, for lack of time.
    `definitions`, `strings` and `comments`: where it names another symbol, or stands in such. `demands`: where a type
    of TypeScript declares a member of that name, which is not a symbol if the type has no name.
    """

    references: list[PlaceInCode] = []
    possible: dict[PlaceInCode, Why] = {}
    elsewhere: dict[PlaceInCode, Sequence[Location]] = {}
    patterns: set[PlaceInCode] = set()
    demands: set[PlaceInCode] = set()
    unexamined: list[PlaceInCode] = []
    definitions: list[PlaceInCode] = []
    strings: list[PlaceInCode] = []
    comments: list[PlaceInCode] = []
    code: dict[str, list[PlaceInCode]] = {}
    """Path → its places in code, of the files of which it is known what the places stand in."""


class Possible:
    """Finds possible references in one project. Belongs to the event loop's thread; callers passed the barrier."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        indexer: Indexer,
        languages: ProjectLanguages,
        search: CandidateSearch,
        leads: Leads,
    ) -> None:
        self._root = root
        self._index = index
        self._places = IndexedPlaces(root, index)
        self._indexer = indexer
        self._tree = tree
        self._languages = languages
        self._search = search
        self._fixtures = Fixtures(root, index, languages, self.are_holders_read)
        self._leads = leads

    async def candidates(self, hit: Hit) -> Places:
        """Every place of the name of `hit`; may be asked for while the server is asked for the references."""
        return await self._search.places_of(hit)

    async def examine(
        self,
        hit: Hit,
        known: Uses,
        limits: Limits = BRIEF,
        candidates: Places | None = None,
        leads: Answers | None = None,
    ) -> Examined:
        """What stands of the name of `hit` besides the uses that are `known`; `candidates` if they are known, too, and
        `leads` where it is known where they lead.

        What a language server fails to say leaves a place a possible reference, and no answer fails for it.
        """
        found = Examined()
        places = await self._unlisted(hit, known, await self.candidates(hit) if candidates is None else candidates)
        todo: list[PlaceInCode] = []
        await self._indexer.settle()
        async for path, spans in paced(places.items()):
            todo += (PlaceInCode(path, one.range) for one in spans)
            if all(one.kind is not None for one in spans) and not self._indexer.is_pending(path):
                found.code[path] = self._in_code(hit, path, spans, {}, found)
        answers: Answers = {}
        first = dict(islice(places.items(), FILES_AT_ONCE))
        with anyio.move_on_after(FIRST_S):
            await self._look(hit, first, answers, found, min(FIRST_PLACES, limits.places), leads or {})
        with anyio.move_on_after(limits.seconds):
            await self._look(hit, places, answers, found, limits.places, leads or {})
        if self._languages.instead(hit.path) is not None:
            with anyio.move_on_after(SYNTAX_S):
                await self._sort_out(hit, places, found)
            unasked = (place for path in places for place in found.code.get(path, ()) if place not in answers)
            found.possible = dict.fromkeys(unasked, "not asked")
        settled = {*answers, *found.strings, *found.comments, *found.definitions, *found.possible}
        found.unexamined = [place for place in todo if place not in settled]
        led_to = {self._places.relative(one.path) for locations in answers.values() for one in locations or ()}
        await self._are_read({path for path in led_to if path is not None})
        same_hierarchy = self.hierarchy(self._languages.language_of(hit.path))
        rules = await self._rules(hit, known, (place.path for place in answers), found)
        async for place in paced(todo):  # in their order, not in that of the server's answers: the nearest are named
            if place in answers:
                await self._judge(hit, place, answers[place], same_hierarchy, rules, found)
        return found

    async def in_code(self, hit: Hit) -> Examined:
        """Places of the name of `hit` in code, its own excepted, without asking its language server: each may refer to
        it (`code`); those of files beyond the first `MOST_FILES` are `unexamined`."""
        found = Examined()
        places = await self._unlisted(hit, Uses(), await self.candidates(hit))
        await self._sort_out(hit, dict(islice(places.items(), MOST_FILES)), found)
        for path, spans in islice(places.items(), MOST_FILES, None):
            found.unexamined += [PlaceInCode(path, one.range) for one in spans]
        return found

    async def leads(self, places: Sequence[PlaceInCode]) -> Answers:
        """Where places lead."""
        answers: Answers = {}
        await self._leads.ask(places, answers)
        return answers

    async def ask_leads(self, places: Sequence[PlaceInCode], answers: Answers) -> None:
        """The same, into `answers`, which has what is known if it is cancelled."""
        await self._leads.ask(places, answers)

    async def may_override(self, hit: Hit) -> bool | None:
        """Whether a base of a member's type has a member of its name, or is not in this project; None if its bases
        could not be read in time."""
        return await self.hierarchy(self._languages.language_of(hit.path)).may_override(hit)

    async def kin_called(self, member: Hit, name: str) -> list[Hit] | None:
        """Members of a name in the types above a member's own and in those below it; None if files that may have one or
        these types could not be read in time."""
        own, language = type_of(member), self._languages.language_of(member.path)
        if own is None:
            return []
        if not await self.are_holders_read(name, language):
            return None
        return await self.hierarchy(language).kin(own, await self._called(name, language))

    async def namesakes(self, hit: Hit) -> list[Hit]:
        """Symbols of the same name and language, and itself."""
        return await self._called(hit.symbol.name, self._languages.language_of(hit.path))

    async def meeting(self, own: Iterable[Hit], members: Iterable[Hit]) -> list[Hit] | None:
        """Those of some members that a type inherits beside those of the types `own`, of the same language; None if
        files that may hold such a type could not be read in time."""
        types = list(own)
        language = self._languages.language_of(types[0].path)
        files = [path async for path in paced(list(self._tree.files)) if self._languages.language_of(path) == language]
        return await self.hierarchy(language).meeting(types, members, partial(self._types_near, files))

    async def _types_near(self, files: Collection[str], name: str) -> list[Hit] | None:
        """The types of those files that hold a name; None if some could not be read in time."""
        holding = await self._search.holding(files, name)
        await self._are_read(holding)
        if any(map(self._indexer.is_pending, holding)):
            return None
        indexed = [(path, self._index.file(path)) for path in holding if path in self._index]
        return [
            Hit(path, file, place)
            for path, file in indexed
            for place, symbol in enumerate(file.symbols)
            if symbol.kind in TYPES
        ]

    async def outside_types(self, hit: Hit) -> list[Hit]:
        """Symbols of the same name and language that are no direct part of a type, such as methods of anonymous
        classes."""
        called = await self._called(hit.symbol.name, self._languages.language_of(hit.path))
        return [one for one in called if type_of(one) is None]

    async def _called(self, name: str, language: str | None) -> list[Hit]:
        called = await self._index.find_paced(parse_pattern(name))
        return [other async for other in paced(called) if self._languages.language_of(other.path) == language]

    async def is_registered(self, hit: Hit) -> bool | None:
        """Whether bases of a type of Python are told of their subclasses, or asked for them; None if these could not be
        read in time."""
        hierarchy = self.hierarchy(self._languages.language_of(hit.path))
        is_told = await hierarchy.is_registered(hit)
        if is_told is not False:
            return is_told
        files = [path for path in self._tree.files if path.endswith(".py")]
        names = await hierarchy.names_above(hit)
        asking = await self._search.holding(files, _LISTING) if names else []
        return any(_LISTING in words and not names.isdisjoint(words) for words in map(self._words_of, asking))

    def _words_of(self, path: str) -> set[str]:
        try:
            return set(re.findall(r"\w+", self._languages.read_text(self._root / path).content))
        except PathError:
            return set()

    def hierarchy(self, language: str | None) -> SameHierarchy:
        """The types of a language, for one question, which may be about many symbols."""
        return SameHierarchy(self._root, partial(self._types_called, language), self._languages)

    async def _types_called(self, language: str | None, name: str) -> list[Hit] | None:
        """The project's types of a name; None if files of a language that may define one could not be read in time."""
        if not await self.are_holders_read(name, language):
            return None
        return [hit for hit in self._index.find(parse_pattern(name)) if hit.symbol.kind in TYPES]

    async def unread_holders(self, name: str) -> list[str]:
        """Files that hold a name, and whose symbols nobody reads, for lack of a language server and a grammar."""
        pending = [path for path in self._indexer.pending_paths() if not self._languages.is_installed(path)]
        holding = await self._search.holding(pending, name) if pending else []
        return await self._search.certainly_holding(holding, name)

    async def are_holders_read(self, name: str, language: str | None = None) -> bool:
        """Whether the symbols of all files that hold a name are known; those that are not yet are waited for, for a
        time. With a language, files of another one do not count that nobody reads, for lack of a server."""
        await self._indexer.settle()
        pending = self._indexer.pending_paths()
        holding = await self._search.holding(pending, name) if pending else ()
        await self._are_read(holding)
        pending = [one for one in holding if self._indexer.is_pending(one) and self._counts(one, language)]
        return not await self._search.certainly_holding(pending, name)

    def _counts(self, path: str, language: str | None) -> bool:
        return language in (None, self._languages.language_of(path)) or self._languages.is_installed(path)

    async def _are_read(self, paths: Collection[str]) -> None:
        """Waits for the symbols of files, for a time."""
        await self._indexer.ensure(paths, most_s=SYMBOLS_S)

    async def other_name(self, hit: Hit) -> str | None:
        """Why the uses of a symbol can't be told by its name; None if they can."""
        return await self._fixtures.other_name(hit) if self._languages.language_of(hit.path) == "python" else None

    async def files_elsewhere(self, hit: Hit) -> list[str]:
        """Files that another language server, or none, reads, and that hold the name of `hit` as a word."""
        return await self._search.files_elsewhere(hit)

    async def holding_beside(self, hit: Hit) -> list[list[str]]:
        """By server, files of those that know uses of symbols of the language of `hit`, which hold its name as a
        word."""
        return await self._search.holding_beside(hit)

    def in_other_projects(self, path: str, others: Iterable[str], names: Collection[str]) -> list[str]:
        """Those of some files whose project, by the nearest file of one of the names, is not that of `path`."""
        return self._search.in_other_projects(path, others, names)

    async def words(self, paths: Collection[str], name: str, prefix: str = "") -> list[PlaceInCode]:
        """Where a name stands as a word in some files, also behind a prefix."""
        return await self._search.words(paths, name, prefix)

    async def holding(self, paths: Collection[str], name: str) -> list[str]:
        """Those of some files that may hold a name as a word."""
        return await self._search.holding(paths, name)

    async def joining(self, name: str) -> list[str]:
        """Files of Python that may hold a name as one of several that `__` joins."""
        return await self._search.joining(name)

    async def composing(
        self, paths: Collection[str], *, beginnings: Collection[str], ends: Collection[str]
    ) -> list[str]:
        """Those of some files that may put a word together from one of the beginnings or ends and something else."""
        return await self._search.composing(paths, beginnings=beginnings, ends=ends)

    @asynccontextmanager
    async def relied_on(
        self, hits: Collection[Hit], names: Collection[str]
    ) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
        """For a plan, made in the block, on the places of names, those of the `hits` included, which may be filled by
        it. Gives what passes the barrier and compares, when the plan is about to be written.

        Raises:
            FileChanged: for a file that has changed since the block was entered, and may hold such a name now.
        """
        await self._tree.fresh()
        with self._tree.noting() as changed:

            async def check() -> None:
                await self._tree.fresh()
                for path in await self._search.naming(hits, names, changed):
                    raise FileChanged(str(self._root / path))

            yield check

    async def _unlisted(self, hit: Hit, known: Uses, candidates: Places) -> dict[str, list[Candidate]]:
        """Where the name stands and in what, by file, without the definition and what is known."""
        listed = {path: {span.start for span in spans} for path, spans in known.places.items()}
        listed.setdefault(hit.path, set()).add(hit.symbol.name_position)
        none = frozenset[Position]()
        doubtful = [
            path
            for path, spans in candidates.items()
            if any(span.start not in listed.get(path, none) for span in spans)
        ]
        told = await self._search.told(hit, doubtful)
        found = {
            path: [one for one in places if one.range.start not in listed.get(path, none)]
            for path, places in told.items()
        }
        return {path: places for path, places in found.items() if places}

    async def _look(
        self,
        hit: Hit,
        places: Candidates,
        answers: Answers,
        found: Examined,
        most: int,
        leads: Answers,
    ) -> None:
        """Sorts places by what they stand in, and asks where those in code lead: some files at a time."""
        for batch in _batches(places, found.code):
            await self._sort_out(hit, {path: places[path] for path in batch}, found)
            code = [place for path in batch for place in found.code[path] if place not in answers]
            answers |= {place: leads[place] for place in code if place in leads}
            await self._leads.ask([place for place in code if place not in answers][: most - len(answers)], answers)
            if len(answers) >= most:
                return

    async def _sort_out(self, hit: Hit, places: Candidates, found: Examined) -> None:
        """Notes of places what they stand in."""
        paths = [path for path in places if path not in found.code]
        await self._are_read(paths)  # where other symbols are defined
        for path in paths:
            parsed = await self._by_grammar(path, hit.symbol.name)
            found.code[path] = self._in_code(hit, path, places[path], parsed, found)

    def _in_code(
        self, hit: Hit, path: str, spans: Iterable[Candidate], parsed: Mapping[Position, Occurrence], found: Examined
    ) -> list[PlaceInCode]:
        """Those places of a file that are neither in a string nor in a comment, nor define another symbol and nothing
        else; the others are noted. `parsed`: what the grammar says of those of which it had to be asked."""
        defined = self._places.defined_in(path, hit.symbol.name)
        code: list[PlaceInCode] = []
        for candidate in spans:
            span, known = candidate.range, candidate.kind
            place, one = PlaceInCode(path, span), parsed.get(span.start)
            kind = known or (one.kind if one else "code")
            if kind == "string":
                found.strings.append(place)
            elif kind == "comment":
                found.comments.append(place)
            elif one is not None and one.shorthand is not None and one.shorthand.binds:
                found.patterns.add(place)
                code.append(place)
            elif span.start in defined:
                found.definitions.append(place)
            else:
                if one is not None and one.demands:
                    found.demands.add(place)
                code.append(place)
        return code

    async def _by_grammar(self, path: str, name: str) -> Mapping[Position, Occurrence]:
        """Position → what the name is there, where a grammar can tell."""
        try:
            return {one.range.start: one for one in await self._languages.syntax.occurrences(path, name)}
        except (LanguageServerError, PathError):
            return {}

    async def _rules(self, hit: Hit, known: Uses, asked: Iterable[str], found: Examined) -> Rules:
        """By which places in the `asked` files are judged."""
        if self._languages.language_of(hit.path) == "python":
            quoting = None if found.unexamined else {place.path for place in found.strings}
            return await self._fixtures.filled_with(hit, known.places.keys(), asked, quoting)
        return rules_for(self._root, hit, self._languages, self._places)

    async def _judge(
        self,
        hit: Hit,
        place: PlaceInCode,
        locations: Sequence[Location] | None,
        same_hierarchy: SameHierarchy,
        rules: Rules,
        found: Examined,
    ) -> None:
        is_named = any(self._is_name_of(hit, location) for location in locations or ())
        verdict = await rules.verdict(place, locations, is_named=is_named)
        if verdict == "other":
            return
        if locations is None:
            found.possible[place] = "not asked"
        elif verdict == "possible" or not locations or self._is_made_up(place, locations, found):
            found.possible[place] = "unresolved"
        elif verdict == "reference" or is_named:
            found.references.append(place)
        elif any(self._is_unread(location) for location in locations):
            found.possible[place] = "unresolved"
        elif await self._among_kin(hit, place, locations, same_hierarchy):
            found.possible[place] = "same hierarchy"
            found.elsewhere[place] = locations
        else:
            found.elsewhere[place] = locations
            is_defined = place.range.start in self._places.defined_in(place.path, hit.symbol.name)
            if is_defined or place in found.demands:
                found.definitions.append(place)

    def _is_name_of(self, hit: Hit, location: Location) -> bool:
        at_name = location.range.start == hit.symbol.name_position
        return at_name and location.path == self._root / hit.path

    def _is_unread(self, location: Location) -> bool:
        """Whether it is not known yet which symbol stands at a place of this project."""
        path = self._places.relative(location.path)
        return path is not None and self._indexer.is_pending(path)

    def _is_made_up(self, place: PlaceInCode, locations: Sequence[Location], found: Examined) -> bool:
        """Whether a place leads to itself because the server knows nothing else: C's implicit declarations in a file
        that it can't know, and variables that take their value from a field of something without a type."""
        here, at = self._root / place.path, place.range.start
        to_itself = all(location.range.start == at and location.path == here for location in locations)
        return to_itself and (place in found.patterns or self._languages.instead(place.path) is not None)

    async def _among_kin(
        self, hit: Hit, place: PlaceInCode, locations: Sequence[Location], same_hierarchy: SameHierarchy
    ) -> bool:
        name = hit.symbol.name
        for location in locations:
            target = self._places.named_at(location, name)
            if target is not None and await same_hierarchy.related(hit, target):
                return True
        return False


def _batches(paths: Iterable[str], sorted_out: Collection[str]) -> Iterator[list[str]]:
    """Paths in their order, in batches of which each has few files that must be parsed first."""
    batch: list[str] = []
    to_parse = 0
    for path in paths:
        batch.append(path)
        to_parse += path not in sorted_out
        if to_parse == FILES_AT_ONCE:
            yield batch
            batch, to_parse = [], 0
    if batch:
        yield batch
