"""Indexer: keeps a SymbolIndex in step with the files of one root, by need first and in the background for the rest.

A file is *pending* from the moment the tree reports it new or changed until it is known what it holds. Callers make
files certain by `ensure`; `run` works through the rest. A file that changes while a server is asked about it is asked
about again: an answer counts only if nothing was reported in between.

What no language server says is read by syntax, where there is a grammar: the server is not installed, fails, breaks on
this file, or leaves a caller waiting for its first answer longer than `PATIENCE_S`. Such files are known, with a gap
that says why. No caller waits for them again: `run` alone asks the server about them, at once when it comes to be
there, else ever more rarely while nothing comes of it; an edit makes it ask about the edited file alone. Which server
answers is the source's business; where the cache lies is the composition root's.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio

from serena_central.core.errors import (
    LanguageServerError,
    PathError,
    ServerBeingInstalled,
    ServerCrashed,
    ServerNotInstalled,
    ServerStartFailed,
    ServerUnavailable,
)
from serena_central.core.pacing import Pace, paced
from serena_central.files.stamp import Stamp
from serena_central.files.tree import Change, FileTree
from serena_central.store.index_cache import IndexCache
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.indexing import failures, source_identity
from serena_central.symbols.indexing.cache_sync import IndexKeeper
from serena_central.symbols.indexing.failures import Failures
from serena_central.symbols.indexing.incompleteness import (
    ANSWER_S,
    KEEPS_CHANGING,
    NOT_READ_YET,
    PATIENCE_S,
    BySyntax,
    Gap,
)
from serena_central.symbols.indexing.index_progress import IndexProgress, Rate, telling
from serena_central.symbols.indexing.priority import Turns
from serena_central.symbols.indexing.single_flight import Flights
from serena_central.symbols.indexing.symbol_source import AskSymbols, Lent, Outline, Read, SymbolSource
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.reader import MOST_WORKERS

logger = logging.getLogger(__name__)

MANY_SYMBOLS = 400
"""Of one container: so many are taken over in a millisecond."""

MAPPED_AT_ONCE = 10
"""Files: thousands of names each, in generated code."""

ASKED_AT_ONCE = 8
"""Requests in flight for one caller: keeps a server with several threads busy, and leaves room for other callers."""

FILLED_AT_ONCE = 2
"""Requests in flight for the background fill, which must not be felt by anybody."""

RETRIED_AT_LEAST_EVERY_S = 600.0
"""The longest pause of the background: nothing tells of a server that a person has repaired."""

SYNTAX_FILES = 32
"""Read by syntax in one go: fewer messages, and some 50 ms of work, for which background work does not give way …"""

SYNTAX_BYTES = 500_000
"""… but no more than this, or one file: all are in memory at once …"""

SYNTAX_AT_ONCE = 2 * MOST_WORKERS
"""… and so many times at once: for each worker one that it parses, and one that waits for it."""

SAVE_EVERY_FILES = 2000

SAVE_EVERY_S = 5.0
"""Seconds of background work that a crash may lose: a slow server answers for 2,000 files in minutes."""

SAVE_AFTER_S = 2.0
"""How long nothing must have changed before fewer are saved: in a row of edits each would open and sync a database.
What a crash loses is asked again; it would be in any case, so soon after a change (RACY_NS)."""

ATTEMPTS = 12
"""How often one caller asks again about a file that keeps changing. On a busy machine five answers in a row came too
late for a file that is written twice a second."""

_NOT_STARTED = ServerNotInstalled, ServerBeingInstalled, ServerStartFailed, ServerUnavailable
"""What a server's next file would meet, too; all else may be over at the next question."""


class Indexer:
    """Fills one index. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        source: SymbolSource,
        cache: IndexCache | None = None,
    ) -> None:
        self._root = root
        self._tree = tree
        self._index = index
        self._source = source
        self._keeper = IndexKeeper(index, cache)
        self._pending: dict[str, None] = {}
        self._doubted: dict[str, None] = {}
        """Files of which is not known who answers for them now."""
        self._failures = Failures()
        self._by_syntax = BySyntax(source.standing)
        self._takes_in = False
        self._improves = True
        """Whether servers may say now what is known by syntax: they were not asked since that came to be."""
        self._unread: set[str] = set()
        """Pending files that a caller waited for in vain."""
        self._flights = Flights()
        self._rate = Rate()
        self.turns = Turns()
        self.on_demand: set[str] = set()
        """Files that somebody asked for and that are no part of project-wide answers, indexed or pending."""
        self._wakeup = anyio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether the symbols of all files are known."""
        return not self._pending and not self._doubted

    @property
    def progress(self) -> IndexProgress:
        """Each file is counted once. Of some it is not known yet whether anybody reads them: those wait, too."""
        doubted = sum(path not in self._pending and path not in self._index for path in self._doubted)
        return IndexProgress(len(self._index), len(self._pending) + doubted, self._rate.per_s)

    def pending_paths(self) -> list[str]:
        return list(self._pending)

    async def load(self) -> None:
        """Takes over the cache for files that are as they were, and marks all others pending."""
        await self._keeper.restore(self._tree.files, partial(source_identity.today, self._source), self._restored)
        self.doubt(path for path in self._tree.files if path not in self._index)
        await self.settle()

    def _restored(self, path: str, source: str) -> None:
        self._note_reach(path)
        self._mark(path, source, None)

    def _mark(self, path: str, source: str, reason: str | None) -> None:
        """Notes whether what is known of a file came by syntax."""
        grammar = self._source.grammar(path) if source_identity.is_by_syntax(source) else None
        if grammar is not None:
            self._by_syntax.add(path, grammar.title, reason, cut=self._index.is_cut(path))
        else:
            self._by_syntax.drop(path)

    def changed(self, changes: Sequence[Change]) -> None:
        """Takes note of what happened to files; to be subscribed to the tree."""
        for change in changes:
            self.forget(change.path)
            if change.kind != "deleted" and self._awaits(change.path):
                self._pending[change.path] = None
        self._wakeup.set()

    def forget(self, path: str) -> None:
        """Throws away what is known or being asked about a file."""
        self._flights.outdate(path)
        if path in self._index:
            self._index.drop(path)
            self._keeper.changed(path)
        self._pending.pop(path, None)
        self._unread.discard(path)
        self.on_demand.discard(path)
        self._failures.succeeded(path)
        self._by_syntax.drop(path)

    def doubt(self, paths: Iterable[str]) -> None:
        """Has it looked at who answers for files now: those of which another server did are asked about again; those
        that are known by syntax stay known, and are asked about in the background."""
        self._doubted.update(dict.fromkeys(paths))
        self.improve()

    def take_in(self) -> None:
        """Other files than before may be searched: `run` sees which are."""
        self._takes_in = True
        self.improve()

    def improve(self) -> None:
        """A server may have come to be there: it is asked soon about what is known by syntax, in the background."""
        self._failures.all_may_start()
        self._improves = True
        self._wakeup.set()

    async def settle(self) -> None:
        """Until it is known who answers for each file. They may be 100,000: others get their turn meanwhile."""
        pace = Pace()
        while self._doubted:
            await pace.turn()
            if not self._doubted:
                break
            path, _ = self._doubted.popitem()
            entry = self._index.entry(path)
            if entry is None or entry.source != source_identity.today(self._source, path, entry.source):
                self.forget(path)
                if path in self._tree.files and self._awaits(path):
                    self._pending[path] = None

    def ask_again(self) -> None:
        """Forgets all files. At once: file by file, 100,000 would hold up everybody for seconds."""
        self._flights.outdate_all()
        self._keeper.changed(*self._index.paths())
        self._index.clear()
        self._pending.clear()
        self.on_demand.clear()
        self._failures = Failures()
        self._by_syntax = BySyntax(self._source.standing)
        self.doubt(self._tree.files)

    def _awaits(self, path: str) -> bool:
        return self._source.identity(path) is not None and self._source.is_searched(path)

    def _ask_for(self, path: str) -> None:
        """A file that is read on demand alone becomes pending when somebody wants it."""
        if path not in self._index and path in self._tree.files and self._source.identity(path) is not None:
            self._pending[path] = None
            self._note_reach(path)

    def _note_reach(self, path: str) -> None:
        if not self._source.is_searched(path):
            self.on_demand.add(path)

    async def ensure(self, paths: Iterable[str], *, most_s: float = math.inf) -> list[Gap]:
        """Indexes those of `paths` that are not; returns what could not be, not in `most_s`, or by syntax only."""
        wanted = list(paths)
        with anyio.move_on_after(most_s) as bound:
            await self._ensure(wanted)
        if bound.cancelled_caught:
            self._unread.update(path for path in wanted if path in self._pending)
        return self.gaps(wanted)

    async def complete(self, paths: Iterable[str]) -> list[Gap]:
        """The same with time: asks servers at once, and as long as they take, about files known by syntax, too."""
        wanted = list(paths)
        await self._ensure(wanted)
        await self._ask_servers([path for path in wanted if path in self._by_syntax], FILLED_AT_ONCE, gives_way=True)
        return self.gaps(wanted)

    async def _ensure(self, wanted: list[str]) -> None:
        await self.settle()
        for path in wanted:
            self._ask_for(path)
        for _ in range(ATTEMPTS):
            waiting = [path for path in wanted if path in self._pending and not self.gave_up(path)]
            if not waiting:
                break
            # Again: a file that was done may have changed while another server was asked about the rest.
            async with telling(len(wanted), lambda: sum(path in self._pending for path in wanted)):
                await self._work(waiting, ASKED_AT_ONCE)

    def gaps(self, paths: Iterable[str]) -> list[Gap]:
        """Those of `paths` whose symbols are not known, or by syntax only. True of what `ensure` was asked for."""
        asked = list(paths)
        standing: dict[Hashable, str] = {}
        reasons = Counter(self._reason(path, standing) for path in asked if path in self._pending)
        return [*(Gap(reason, files) for reason, files in reasons.items()), *self._by_syntax.gaps(asked)]

    def _reason(self, path: str, standing: dict[Hashable, str]) -> str:
        """Why the symbols of a pending file are not known. `standing`: what was said of servers in this answer."""
        if path not in self._failures:
            return NOT_READ_YET if path in self._unread else KEEPS_CHANGING
        reason = self._failures.reason(path)
        if reason is not None:
            return reason
        server = self._source.server_of(path)
        if server not in standing:
            standing[server] = self._source.standing(path)
        return standing[server]

    def gaps_within(self, within: str | None, asked: Iterable[str]) -> list[Gap]:
        """What `gaps` says of the files that were `asked` about, and of all in a file or folder known by syntax; not of
        files in a folder whose server is left alone."""
        unknown = self.gaps(path for path in asked if path not in self._by_syntax)
        but = self._source.is_left_alone
        by_syntax = self._by_syntax.all_gaps(but=but) if within is None else self._by_syntax.gaps_below(within, but=but)
        return [*unknown, *by_syntax]

    def gave_up(self, path: str) -> bool:
        """Whether a pending file failed, and is left alone for now."""
        return self._failures.gave_up(path)

    async def map_names(self, *, gives_way: bool = False) -> None:
        """Until every name that the cache brought leads to its files; others get their turn meanwhile."""
        pace = Pace()
        while self._index.map_names(MAPPED_AT_ONCE):
            if await pace.turn() and gives_way:
                await self.turns.give_way()

    async def run(self) -> None:
        """Fills the index for ever; belongs to the project's task group."""
        await self.map_names(gives_way=True)
        pause_s = failures.FAILURE_HOLDS_S
        due = anyio.current_time() + pause_s
        while True:
            self._wakeup = anyio.Event()
            await self.turns.give_way()  # who changed something asks about it, too
            await self.settle()
            if self._takes_in:
                self._takes_in = False
                await self._take_in()
            new = [path for path in self._pending if not self._failures.is_final(path)]
            await self._fill(new)
            if any(self._failures.is_final(path) for path in new):
                pause_s = failures.FAILURE_HOLDS_S
                due = min(due, anyio.current_time() + pause_s)
            await self._save_when_quiet()
            if self._improves:
                self._improves = False
                await self._improve()
            lacking = self._lacking()
            with anyio.move_on_after(due - anyio.current_time() if lacking else None) as waited:
                await self._wakeup.wait()
            if waited.cancelled_caught:
                await self._fill(self.pending_paths())
                await self._improve()
                in_vain = self._lacking() >= lacking
                pause_s = min(pause_s * 2, RETRIED_AT_LEAST_EVERY_S) if in_vain else failures.FAILURE_HOLDS_S
            if waited.cancelled_caught or not lacking:
                due = anyio.current_time() + pause_s

    async def _take_in(self) -> None:
        async for path in paced(list(self._tree.files)):
            if not self._source.is_searched(path):
                if path not in self.on_demand:  # else somebody has asked for it
                    self._pending.pop(path, None)
            elif path in self._tree.files and self._source.identity(path) is not None:
                self.on_demand.discard(path)
                if path not in self._index:
                    self._pending[path] = None

    async def _fill(self, paths: Sequence[str]) -> None:
        by_syntax: list[str] = []
        by_servers: list[str] = []
        async for path in paced(list(paths)):
            (by_syntax if self._is_instead(path) else by_servers).append(path)
        for some in (by_syntax, by_servers):  # what the syntax reads waits for no server
            for start in range(0, len(some), SAVE_EVERY_FILES):
                await self._work(some[start : start + SAVE_EVERY_FILES], FILLED_AT_ONCE, gives_way=True)
                if self._keeper.unsaved >= SAVE_EVERY_FILES:
                    await self.save()

    async def _save_when_due(self) -> None:
        """Saves what background work has brought, every `SAVE_EVERY_S`. Others go on meanwhile."""
        if self._keeper.unsaved and self._keeper.seconds_since_save >= SAVE_EVERY_S:
            await self.save()

    async def _improve(self) -> None:
        """Has servers say what is known by syntax, where they are not left alone. Nobody waits for that."""
        paths = self._by_syntax.paths(but=self._source.is_left_alone)
        for start in range(0, len(paths), SAVE_EVERY_FILES):
            await self._ask_servers(paths[start : start + SAVE_EVERY_FILES], FILLED_AT_ONCE, gives_way=True)
            if self._keeper.unsaved:
                await self.save()

    def _lacking(self) -> int:
        """Files of which a server may still say something, or something else."""
        return len(self._pending) + self._by_syntax.count(but=self._source.is_left_alone)

    async def _save_when_quiet(self) -> None:
        with anyio.move_on_after(SAVE_AFTER_S) as quiet:
            if self._keeper.unsaved:
                await self._wakeup.wait()
        if quiet.cancelled_caught:
            await self.save()

    async def save(self) -> None:
        """Writes what changed since the last time to the cache."""
        await self._keeper.save()

    async def _work(self, paths: Sequence[str], at_once: int, *, gives_way: bool = False) -> None:
        """Makes files certain: by syntax those that their servers can't know, the others by their servers, then by
        syntax what no server said."""
        by_syntax = [path for path in paths if path in self._pending and self._is_instead(path)]
        await self._read_by_syntax(by_syntax, gives_way=gives_way)
        await self._ask_servers([path for path in paths if path in self._pending], at_once, gives_way=gives_way)
        left = [path for path in paths if path in self._pending and not self.gave_up(path)]
        await self._read_by_syntax(left, gives_way=gives_way)

    async def _read_by_syntax(self, paths: Sequence[str], *, gives_way: bool) -> None:
        queue = self._batches(paths)

        async def worker() -> None:
            for batch in queue:
                if gives_way:
                    await self.turns.give_way()
                await self._make_certain_by_syntax(batch)
                if gives_way:
                    await self._save_when_due()

        async with anyio.create_task_group() as tasks:
            for _ in range(min(SYNTAX_AT_ONCE, len(paths))):
                tasks.start_soon(worker)

    def _batches(self, paths: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for path in paths:
            stamp = self._tree.files.get(path)
            size += stamp.size if stamp else 0
            if batch and (len(batch) == SYNTAX_FILES or size > SYNTAX_BYTES):
                yield batch
                batch, size = [], stamp.size if stamp else 0
            batch.append(path)
        if batch:
            yield batch

    async def _make_certain_by_syntax(self, paths: Sequence[str]) -> None:
        for _ in range(ATTEMPTS):
            wanted = [path for path in paths if self._wants(path, by_syntax=True)]
            if not wanted:
                return
            flights = {path: self._flights.get(path, by_syntax=True) for path in wanted}
            await self._parse([path for path, flight in flights.items() if flight is None])
            for flight in flights.values():
                if flight is not None:
                    await flight.done.wait()

    async def _parse(self, paths: Sequence[str]) -> None:
        flights = {path: self._flights.begin(path, by_syntax=True) for path in paths}
        sources, now = {path: self._source_by_syntax(path) for path in paths}, time.time_ns()
        try:
            found = await self._source.read_by_syntax(paths)
        except LanguageServerError as error:
            found = [error] * len(paths)
        finally:
            for path, flight in flights.items():
                self._flights.end(path, flight, by_syntax=True)
        for path, read in zip(paths, found, strict=True):
            source, known = sources[path], self._tree.files.get(path)
            if flights[path].stale or (path not in self._pending and path in self._index):
                continue  # it changed, or its server was quicker
            if known is None or source is None:
                self.forget(path)
            elif isinstance(read, Read):
                stamp = known if known == read.stamp else read.stamp  # one for both
                self._index.put_packed(path, read.symbols, stamp=stamp, indexed_at_ns=now, source=source)
                self._done(path, source)
            else:
                first = (
                    ""
                    if source_identity.is_instead(source)
                    else self._failures.reason(path) or self._source.standing(path)
                )
                self._fail([path], f"{first} Nor by syntax: {read}" if first else str(read), by_syntax=True)

    def _source_by_syntax(self, path: str) -> str | None:
        own = self._source.identity(path)
        return (
            own
            if own is not None and source_identity.is_instead(own)
            else source_identity.by_syntax(self._source, path)
        )

    def _is_instead(self, path: str) -> bool:
        """Whether the syntax reads a file, and not the server of its language."""
        own = self._source.identity(path)
        return own is not None and source_identity.is_instead(own)

    def _done(self, path: str, source: str) -> None:
        """It is known what a file holds."""
        self._rate.count()
        self._mark(path, source, self._failures.reason(path))
        self._pending.pop(path, None)
        self._unread.discard(path)
        self._failures.succeeded(path)
        self._keeper.changed(path)

    async def _ask_servers(self, paths: Iterable[str], at_once: int, *, gives_way: bool) -> None:
        """Asks the servers about files, those of one server under one lease."""
        of_server: dict[Hashable, list[str]] = {}
        async for path in paced(list(paths)):
            if self._is_instead(path):
                continue
            if self._source.is_left_alone(path):
                self._fail([path] if path in self._pending else [], None)
            elif not self._failures.holds(path):
                of_server.setdefault(self._source.server_of(path), []).append(path)
        async with anyio.create_task_group() as tasks:  # a server that is slow to start holds up no other's files
            for server, group in of_server.items():
                patient = gives_way or self._source.grammar(group[0]) is None
                if self._failures.refuses(server) or (not patient and self._failures.is_slow(server)):
                    self._fail((path for path in group if path in self._pending), None)
                else:
                    tasks.start_soon(self._read_group, server, group, at_once, gives_way, patient)

    async def _read_group(
        self, server: Hashable, group: list[str], at_once: int, gives_way: bool, patient: bool
    ) -> None:
        began, answered = anyio.current_time(), False
        with anyio.move_on_after(None if patient else PATIENCE_S) as patience:

            async def read(lent: Lent) -> None:
                self._failures.started(server)

                async def ask(path: str) -> Outline:
                    nonlocal answered
                    outline = await lent.ask(path)
                    if not patient and not answered:
                        patience.deadline = began + max(ANSWER_S, PATIENCE_S)
                    answered = True
                    self._failures.answered(server)
                    return outline

                await self._read(group, at_once, gives_way, Lent(ask, lent.server))

            try:
                await self._source.lend(group[0], read)
            except LanguageServerError as error:
                not_started = isinstance(error, _NOT_STARTED)
                if not_started:
                    self._failures.refuse(server)
                self._fail((path for path in group if path in self._pending), None if not_started else str(error))
        if patience.cancelled_caught:
            if not answered:
                self._failures.slow(server)
            self._fail((path for path in group if path in self._pending), None)
            self._improves = True  # it goes on in the background
            self._wakeup.set()

    async def _read(self, paths: list[str], at_once: int, gives_way: bool, lent: Lent) -> None:
        """Asks one server about files, several at a time. Raises ServerCrashed."""
        queue = iter(paths)
        asking: set[str] = set()
        crash: ServerCrashed | None = None

        async def worker() -> None:
            nonlocal crash
            for path in queue:
                if gives_way:
                    await self.turns.give_way()
                asking.add(path)
                try:
                    await self._make_certain(path, lent.ask)
                except ServerCrashed as error:
                    crash = error
                    tasks.cancel_scope.cancel()
                    return
                asking.discard(path)
                if gives_way:
                    await self._save_when_due()

        async with anyio.create_task_group() as tasks:
            for _ in range(min(at_once, len(paths))):
                tasks.start_soon(worker)
        if crash is not None:
            # Who was there twice is left alone, so that the rest is read.
            self._fail(self._failures.suspect(asking, lent.server), str(crash))
            raise crash

    async def _make_certain(self, path: str, ask: AskSymbols) -> None:
        for _ in range(ATTEMPTS):
            if not self._wants(path, by_syntax=False):
                return
            flight = self._flights.get(path, by_syntax=False)
            if flight is not None:
                await flight.done.wait()
            else:
                await self._ask(path, ask)

    def _wants(self, path: str, *, by_syntax: bool) -> bool:
        if by_syntax:
            due = self._failures.is_recent(path) or self._is_instead(path)
            return due and path in self._pending and not self.gave_up(path)
        return (path in self._pending or path in self._by_syntax) and not self._failures.holds(path)

    def _fail(self, paths: Iterable[str], reason: str | None, *, by_syntax: bool = False) -> None:
        for path in paths:
            self._failures.note(path, reason, final=by_syntax or self._source.grammar(path) is None)

    async def _ask(self, path: str, ask: AskSymbols) -> None:
        flight = self._flights.begin(path, by_syntax=False)
        source, now = self._source.identity(path), time.time_ns()
        try:
            # From the disk, not from the tree: what no event tells (a hard link's change) must show at the next use.
            stamp = Stamp.of((self._root / path).stat())
            known = self._tree.files.get(path)
            if known is None or source is None:
                self.forget(path)
                return
            stamp = known if known == stamp else stamp  # one for both
            file = await _flat(await ask(path))
            if not flight.stale:
                self._index.put(path, file, stamp=stamp, indexed_at_ns=now, source=source)
                self._done(path, source)
        except ServerCrashed:
            raise
        except (LanguageServerError, PathError, OSError) as error:
            if not flight.stale:
                self._fail([path], str(error))
        finally:
            self._flights.end(path, flight, by_syntax=False)


async def _flat(outline: Outline) -> FileSymbols:
    """The symbols of a file as the index keeps them. Of generated code, which has thousands, in a thread."""
    if len(outline.symbols) < MANY_SYMBOLS and all(len(one.children) < MANY_SYMBOLS for one in outline.symbols):
        return flatten(outline.symbols, cut=outline.cut)
    return await anyio.to_thread.run_sync(partial(flatten, outline.symbols, cut=outline.cut))
