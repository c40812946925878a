"""Collects the references to the symbols of a folder from the language servers, at low priority, each once.

Answers are kept by content (see `word_index`) as they come: a cancelled collection is resumed where it ended. A
completed one is kept, and returned again as long as nothing changed. One collection per project runs at a time; a
waiting one finds the answers of the one before.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

import anyio
import anyio.to_thread
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from serena_central.analysis.collection import Collected, Definition, Place, chosen
from serena_central.analysis.other_platforms import OtherPlatforms
from serena_central.analysis.reference_queries import Asked, UsesAnswer, uses_of
from serena_central.analysis.uncertain_places import Doubtful, UncertainPlaces
from serena_central.analysis.word_index import Surroundings, imported_as, state_of
from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import LanguageServerError, ServerNotInstalled
from serena_central.core.pacing import Pace, paced
from serena_central.core.progress import report
from serena_central.core.text import Position
from serena_central.core.words import counted
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.project import Project
from serena_central.store.uses_cache import CachedUses, FinishedCache, UsesCache
from serena_central.symbols.index import Hit

AT_ONCE = 2
"""Questions in flight at one server: more don't make it quicker, and callers' questions would wait behind them."""

BATCH = 48
"""Symbols asked about under one lease, and saved together: a second or two of work."""

SAVE_S = 5.0

REPORTED_EVERY_S = 1.0

CONVENTIONAL = 50
"""A name that more files define than this is a convention (`Migration`, `urlpatterns`): it is found by those who load
such files, and asking for the uses of each would take longer than all the rest."""

AROUND_S = 600.0
"""How long it is kept what the files hold, for a collection that was cut short."""

_Around = tuple[tuple[float, int], set[str], Surroundings]
"""The project's state, the names that were looked for, and what was found."""

Pair = tuple[Hit, Definition]

Symbol = tuple[str, str]
"""Path and name path."""

Kept = tuple[dict[str, list[Place]], int, dict[str, list[Place]], int]
"""Of one symbol: path → places, and how many lie outside the project; path → possible ones, and how many places were
not looked at."""

WITHOUT_POSSIBLE = "\0references alone"
"""Behind the name path of a cached answer for which no possible references were looked for."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(Kept)
_whole_decoder = msgpack_decoder(Collected)


class Exempt(NamedTuple):
    """Which symbols are not asked about. `reason` tells why of one, if it is; with the same `key` it says the same as
    long as no file changes."""

    key: str
    reason: Callable[[Hit], Awaitable[str | None]]


class _Wanted(NamedTuple):
    """What is collected: see `Collector.collect`."""

    within: bool
    possible: bool
    exempt: Exempt | None
    here_only: bool
    has_begun: bool
    until: float


class Collections:
    """The collectors of open projects, by project. `folder` is where their caches lie (Places.cache)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._collectors: WeakKeyDictionary[Project, Collector] = WeakKeyDictionary()

    def of(self, project: Project) -> "Collector":
        known = self._collectors.get(project)
        if known is None:
            caches = UsesCache(self.folder, project.root), FinishedCache(self.folder, project.root)
            known = self._collectors[project] = Collector(project, *caches)
        return known


class Collector:
    """Collects for one project. Belongs to the event loop's thread."""

    def __init__(self, project: Project, cache: UsesCache, finished: FinishedCache) -> None:
        self._project_ref = ref(project)  # `Collections` would else keep it, and its index, when it is closed
        self._cache = cache
        self._finished = finished
        self._one = anyio.Lock()
        self._around: _Around | None = None
        self._exempt: tuple[tuple[float, int], str, dict[Symbol, str]] | None = None
        """The project's state, the key of what exempts symbols, and why it does; or, empty, that it does not."""

    @property
    def _project(self) -> Project:
        project = self._project_ref()
        assert project is not None, "who collects holds it"
        return project

    async def collect(
        self,
        path: str,
        kinds: frozenset[int] = frozenset(),
        *,
        within: bool = False,
        possible: bool = True,
        exempt: Exempt | None = None,
        here_only: bool = False,
        has_begun: bool = False,
        until: float = math.inf,
    ) -> Collected:
        """The symbols of a file or folder and all their uses; `within`: also those uses in a symbol's own file.

        Without `kinds` the symbols at the top of files, else those kinds at any depth, but in functions. Those that are
        `exempt` are not asked about, and possible references only looked for if they are wanted (`possible`).
        `here_only`: what stands in files that are not built on this platform is left for a later collection. So is all
        that is not answered at `until` (the loop's clock). `has_begun`: the same call has asked about some before.

        Raises:
            PathError: the path can't be used.
        """
        async with self._one:
            report("reading symbols")
            files, gaps = await self._project.overview(path, patient=True)
            wanted = _Wanted(within, possible, exempt, here_only, has_begun, until)
            question = f"{self._project.locate(path)}\0{sorted(kinds)}\0{within}"
            if exempt is not None or not possible:
                question += f"\0{possible}\0{exempt.key if exempt else ''}"
            state = await state_of(self._project)
            collected = await self._as_before(question, state)
            if collected is None:
                hits = [hit async for file in paced(sorted(files)) for hit in chosen(files[file], file, kinds)]
                code = sorted(file for file in files if self._project.languages.is_code(file))
                collected, lasting = await self._collect_now(hits, code, wanted)
                if lasting and state is not None and state == await state_of(self._project):
                    await anyio.to_thread.run_sync(self._keep, question, state, collected)
            collected.notes = [*map(str, gaps), *collected.notes]
            return collected

    async def _as_before(self, question: str, state: bytes | None) -> Collected | None:
        blob = state and await anyio.to_thread.run_sync(self._finished.load, question, state)
        if not blob:
            return None
        before = await anyio.to_thread.run_sync(_whole_decoder.decode, blob)
        before.asked, before.reused = 0, before.asked + before.reused
        return before

    def _keep(self, question: str, state: bytes, collected: Collected) -> None:
        self._finished.save(question, state, _encoder.encode(collected))

    async def _collect_now(self, hits: Sequence[Hit], files: list[str], wanted: _Wanted) -> tuple[Collected, bool]:
        """The uses of `hits`; and whether the answer would be the same as long as nothing changes."""
        names = {imported_as(path) for path in {hit.path for hit in hits}}.union(hit.symbol.name for hit in hits)
        around = await self._surroundings(names)
        if wanted.exempt is not None:
            wanted = wanted._replace(exempt=self._remembering(wanted.exempt))
        run = _Run(self._project, self._cache, around, wanted)
        found = await run.answer(hits)
        if not run.unasked:
            self._around = self._exempt = None
        return Collected(found, files, run.asked, run.reused, run.unasked, run.elsewhere, run.notes()), run.lasting

    def _remembering(self, exempt: Exempt) -> Exempt:
        """The same, that knows as long as nothing changes what it said in collections that were cut short."""
        state = self._project.state
        if self._exempt is None or self._exempt[:2] != (state, exempt.key):
            self._exempt = state, exempt.key, dict[Symbol, str]()
        known = self._exempt[2]

        async def reason(hit: Hit) -> str:
            symbol = hit.path, hit.name_path
            if symbol not in known:
                known[symbol] = await exempt.reason(hit) or ""
            return known[symbol]

        return Exempt(exempt.key, reason)

    async def _surroundings(self, names: set[str]) -> Surroundings:
        """Those of a collection that was cut short are kept for the next one, which goes on: to read all files again
        takes seconds where there are many."""
        state = self._project.state
        if self._around is not None and self._around[:2] == (state, names):
            return self._around[2]
        report("reading files")
        self._around = None
        around = await Surroundings.of(self._project, names)
        kept = self._around = state, names, around
        asyncio.get_running_loop().call_later(AROUND_S, self._forget, kept)
        return around

    def _forget(self, kept: _Around) -> None:
        if self._around is kept:
            self._around = self._exempt = None


class _Run:
    """One collection: its questions, what was kept of earlier ones, and what went wrong."""

    def __init__(self, project: Project, cache: UsesCache, around: Surroundings, wanted: _Wanted) -> None:
        self._project = project
        self._wanted = wanted
        self._until = wanted.until
        self._cache = cache
        self._around = around
        self._doubts = UncertainPlaces(project)
        self._stamps = dict(project.tree.files)
        self.asked = self.reused = self.unasked = self.elsewhere = 0
        self._begun = 0
        """Questions, answered or not."""
        self._older = 0
        """Reused answers from before files changed that they should not depend on."""
        self._total = self._files = 0
        """How many symbols must be asked about, as far as is known, and in how many files."""
        self._left_in: Counter[str] = Counter()
        """File → how many symbols are left to ask about."""
        self._defined: Counter[str] = Counter()
        self._conventional: set[str] = set()
        self._changed: set[str] = set()
        self._problems: dict[str, int] = {}
        self._passing = False
        """Some of the problems may be over at the next collection."""

    async def answer(self, hits: Sequence[Hit]) -> list[Definition]:
        found = [Definition(hit.path, hit.name_path, hit.symbol.kind, hit.symbol.name_line) for hit in hits]
        kept = {(row.path, row.name_path): row for row in await anyio.to_thread.run_sync(self._cache.load)}
        for name, _ in {(hit.symbol.name, hit.path) for hit in hits}:
            self._defined[name] += 1
        pending: list[Pair] = []
        async for hit, definition in paced(zip(hits, found, strict=True)):
            if self._defined[hit.symbol.name] > CONVENTIONAL:
                self._conventional.add(hit.symbol.name)
                definition.known = False
                continue
            if not self._may_be_used(hit):
                continue
            definition.asked = True
            row = self._kept_row(kept, hit)
            if row is not None:
                _restore(definition, _decoder.decode(row.blob))
                self.reused += 1
                self._older += row.fingerprint != self._around.fingerprint
            else:
                pending.append((hit, definition))
        places: dict[Hashable, list[Pair]] = {}
        async for hit, definition in paced(self._in_order(pending)):
            places.setdefault(self._project.languages.workplace_of(hit.path), []).append((hit, definition))
            self._left_in[hit.path] += 1
        self._total, self._files = self._left_in.total(), len(self._left_in)
        self._began = self._reported = anyio.current_time()
        await self._drop({path for path, _ in kept} - set(self._stamps))
        async with anyio.create_task_group() as tasks:
            for work in places.values():
                tasks.start_soon(self._ask_all, work)
        return found

    def _in_order(self, pending: Sequence[Pair]) -> list[Pair]:
        """What is built on this platform first: for a file of another one a server loads the project once more."""
        others = self._around.other_platforms
        here = [one for one in pending if one[0].path not in others]
        elsewhere = [one for one in pending if one[0].path in others]
        if not self._wanted.here_only:
            return here + elsewhere
        self._leave(elsewhere)
        self.elsewhere = len(elsewhere)
        return here

    def _kept_row(self, kept: Mapping[tuple[str, str], CachedUses], hit: Hit) -> CachedUses | None:
        """The cached answer about a symbol; one with possible references answers as well where they are not wanted."""
        for suffix in ("",) if self._wanted.possible else ("", WITHOUT_POSSIBLE):
            row = kept.get((hit.path, hit.name_path + suffix))
            if row is not None and row.digest == self._around.digest(hit):
                return row
        return None

    def _may_be_used(self, hit: Hit) -> bool:
        if not self._wanted.within:
            return self._around.may_be_used_elsewhere(hit)
        # Where nobody is asked, the name stands nowhere else: findings say so.
        elsewhere = any(path != hit.path for path in self._around.holders(hit))
        return elsewhere or self._around.count_in(hit.path, hit.symbol.name) > 1

    async def _drop(self, gone: set[str]) -> None:
        if gone:
            await anyio.to_thread.run_sync(lambda: self._cache.save([], gone))

    async def _ask_all(self, work: list[Pair]) -> None:
        """Asks one server, batch by batch; if it is unavailable, its symbols have no references, and a note says so.

        Which symbols are exempt is found out meanwhile: a large project's server takes long to answer the first.
        """
        todo, later = dict(enumerate(work)), list[int]()
        send, receive = anyio.create_memory_object_stream[int](math.inf)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sort_out, todo, send)
            with receive:
                async for number in receive:
                    if anyio.current_time() >= self._until:
                        break
                    numbers = [number, *_at_hand(receive, BATCH - 1)]
                    later += [one for one in numbers if self._platform_of(todo[one])]
                    here = [one for one in numbers if not self._platform_of(todo[one])]
                    if here and not await self._ask_some(here, todo):
                        tasks.cancel_scope.cancel()
                        return
        later.sort(key=lambda number: self._platform_of(todo[number]) or "")
        others = OtherPlatforms(has_begun=self._wanted.has_begun or self.asked > 0)
        for path, of_file in groupby(later, key=lambda number: todo[number][0].path):
            numbers, platform = list(of_file), self._around.other_platforms[path]
            while numbers and others.begins(platform, self._until - anyio.current_time()):
                if not await self._ask_some(numbers[:BATCH], todo):
                    return
                numbers = numbers[BATCH:]
                others.answered(platform)
        self.elsewhere += sum(self._platform_of(one) is not None for one in todo.values())
        self._leave(todo.values())

    def _platform_of(self, pair: Pair) -> str | None:
        """What its file is built for, if that is not this platform."""
        return self._around.other_platforms.get(pair[0].path)

    async def _ask_some(self, numbers: list[int], todo: dict[int, Pair]) -> bool:
        """Asks about those of `todo` and takes them out; False if the server is unavailable, to be given up."""
        batch = [todo[one] for one in numbers]
        try:
            await self._ask(batch)
        except LanguageServerError as error:
            self._give_up(todo.values(), error)
            return False
        for one in numbers:
            del todo[one]
        self._left_in.subtract(hit.path for hit, _ in batch)
        self._report()
        return True

    async def _sort_out(self, todo: dict[int, Pair], asked: MemoryObjectSendStream[int]) -> None:
        """Sends the numbers of those that are asked about, and drops those that are exempt."""
        pace, exempt = Pace(), self._wanted.exempt
        with asked:
            for number, (hit, definition) in list(todo.items()):
                if anyio.current_time() >= self._until:
                    return
                await pace.turn()
                definition.exempt = await exempt.reason(hit) or "" if exempt else ""
                if definition.exempt:
                    definition.asked = definition.known = False
                    del todo[number]
                    self._total -= 1
                    self._left_in[hit.path] -= 1
                    continue
                with suppress(anyio.BrokenResourceError):
                    asked.send_nowait(number)

    def _give_up(self, left: Collection[Pair], error: LanguageServerError) -> None:
        self._problem(str(error), len(left), passing=not isinstance(error, ServerNotInstalled))
        for _, definition in left:
            definition.known = False

    def _leave(self, work: Collection[Pair]) -> None:
        """Time does not suffice for these."""
        self.unasked += len(work)
        for _, definition in work:
            definition.known = False

    async def _turn(self) -> None:
        """Before each question."""
        if anyio.current_time() - self._reported >= REPORTED_EVERY_S:
            self._report()
        self._begun += 1
        await self._project.indexer.priority.give_way()

    def _report(self) -> None:
        self._reported = anyio.current_time()
        begun = max(self._begun - AT_ONCE, self.asked)
        done = self._files - sum(left > 0 for left in self._left_in.values())
        left_s = (self._total - begun) * (self._reported - self._began) / begun if begun else 0.0
        left = f", about {left_s:.0f} s left" if begun else ""
        report(
            f"collecting references: {begun} of {self._total} symbols, {done} of {self._files} files{left}",
            begun / self._total if self._total else None,
        )

    async def _ask(self, batch: list[Pair]) -> None:
        meant = self._meaning(batch)
        asked = [self._asked(hit) async for hit, _ in paced(batch)]  # thousands of files hold `New`
        answers: list[UsesAnswer | None] = [None] * len(batch)
        try:
            await uses_of(
                self._project,
                asked,
                self._doubts,
                answers,
                turn=self._turn,
                at_once=AT_ONCE,
                until=self._until,
                possible=self._wanted.possible,
            )
        finally:
            # What was answered is kept, also if nobody waits for the rest any more.
            with anyio.move_on_after(SAVE_S, shield=True):
                await self._take(batch, answers, meant)
        self._leave([one for one, answer in zip(batch, answers, strict=True) if answer is None])
        self.asked += sum(answer is not None for answer in answers)

    def _asked(self, hit: Hit) -> Asked:
        """Without places in files of other platforms: to be asked about one, a server loads the project once more."""
        counts, others = self._around.counts(hit), self._around.other_platforms
        here = counts if hit.path in others else {path: count for path, count in counts.items() if path not in others}
        return Asked(hit, here, sum(counts.values()) - sum(here.values()))

    async def _take(self, batch: list[Pair], answers: Sequence[UsesAnswer | None], meant: str | None) -> None:
        await self._project.tree.fresh()
        self._project.languages.look_at_environment()
        steady = self._meaning(batch) == meant
        if not steady:
            self._problem(
                "the environment in which imports are resolved changed during the run", len(batch), passing=True
            )
        rows: list[CachedUses] = []
        for (hit, definition), answer in zip(batch, answers, strict=True):
            if answer is None:
                definition.known = False
                continue
            uses = answer.uses
            kept = self._uses(hit, uses), uses.outside, _places(answer.possible), answer.unexamined
            _restore(definition, kept)
            if uses.note:
                self._problem(uses.note, 1, passing=True)
                definition.known = False
            elif not steady:
                definition.known = False
            elif self._unchanged(hit, answer):
                around, blob = self._around, _encoder.encode(kept)
                name_path = definition.name_path + ("" if self._wanted.possible else WITHOUT_POSSIBLE)
                rows.append(CachedUses(hit.path, name_path, around.digest(hit), around.fingerprint, blob))
        await anyio.to_thread.run_sync(self._cache.save, rows)

    def _meaning(self, batch: list[Pair]) -> str | None:
        """What the answers for a batch, which is all of one server, depend on beside the files."""
        return self._project.languages.meaning(batch[0][0].path)

    def _uses(self, hit: Hit, answer: Uses) -> dict[str, list[Place]]:
        """The places of uses; without those in files that define the same name, and don't import it from here.

        Servers take two definitions for one where both stand for something that is missing.
        """
        return {
            path: [_place(span.start) for span in spans]
            for path, spans in answer.places.items()
            if path == hit.path
            or self._around.names_file(path, hit.path)
            or not self._defines(path, hit.symbol.name, {span.start for span in spans})
        }

    def _defines(self, path: str, name: str, places: Collection[Position]) -> bool:
        if path not in self._project.index:
            return False
        symbols = self._project.index.file(path).symbols
        return any(symbol.name == name and symbol.name_position in places for symbol in symbols)

    def _unchanged(self, hit: Hit, answer: UsesAnswer) -> bool:
        """Whether the answer is about the files as they were read; those that are not are noted."""
        files = {hit.path, *self._around.holders(hit), *answer.uses.places}
        now = self._project.tree.files
        changed = {path for path in files if now.get(path) != self._stamps.get(path)}
        self._changed |= changed
        return not changed

    def _problem(self, text: str, symbols: int, *, passing: bool) -> None:
        self._problems[text] = self._problems.get(text, 0) + symbols
        self._passing = self._passing or passing

    @property
    def lasting(self) -> bool:
        """Whether asking again would give the same, as long as nothing changes."""
        return not (self._passing or self._changed or self.unasked)

    def notes(self) -> list[str]:
        """What the answer may lack, and why."""
        said = [f"{counted(count, 'symbol')}: possibly incomplete: {text}" for text, count in self._problems.items()]
        if self.unasked:
            total = self.asked + self.reused + self.unasked
            said.append(
                f"Out of time: the references to {self.unasked} of {total} symbols were not "
                "collected. The result so far is kept: call again to resume, or pass a higher seconds."
            )
        if self._changed:
            some = ", ".join(sorted(self._changed)[:3])
            said.append(f"{counted(len(self._changed), 'file')} changed during the run ({some}). Call again.")
        if self._conventional:
            some = ", ".join(sorted(self._conventional)[:5])
            said.append(
                f"References to names that more than {CONVENTIONAL} files define are not counted: {some}"
                f"{' …' if len(self._conventional) > 5 else ''}."
            )
        if self._older:
            said.append(
                f"{counted(self._older, 'cached answer')} reused although other files changed; files with the same "
                "name did not."
            )
        return said


def _at_hand(stream: MemoryObjectReceiveStream[int], most: int) -> list[int]:
    """What is there already."""
    found: list[int] = []
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while len(found) < most:
            found.append(stream.receive_nowait())
    return found


def _restore(definition: Definition, kept: Kept) -> None:
    definition.uses, definition.outside, definition.possible, definition.unexamined = kept


def _places(found: Doubtful) -> dict[str, list[Place]]:
    return {path: [_place(span.start) for span in spans] for path, spans in found.items()}


def _place(position: Position) -> Place:
    return position.line0, position.column
