"""The state of each file of a root: its symbols and their source, or why they are not known yet.

A file is *pending* from the moment the tree reports it new or changed until its symbols are known. Only this module
changes the state, so that its parts stay consistent. It asks no server.

What could not be indexed (files that failed, servers that did not start or make callers wait) is remembered for a
while, so that callers don't wait for the same failure repeatedly; a change of the file ends it. So are files that are
known by syntax only, and how fast files are read.
"""

import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import NamedTuple

import anyio
import msgspec

from serena_central.core.progress import report
from serena_central.files.tree import FileTree
from serena_central.symbols.index import SymbolIndex, lies_within
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.cache_sync import CacheSync
from serena_central.symbols.indexing.incompleteness import (
    KEEPS_CHANGING,
    NOT_READ_YET,
    Incompleteness,
    in_part,
    not_read_yet,
)
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.indexing.symbol_source import SymbolSource

RATE_OVER_S = 20
"""The rate is that of the last seconds: what a server read first says little of what is left."""

FEW_COUNTED, SURE_AFTER_S = 20, 5.0
"""From fewer files, in fewer seconds, no rate is taken."""

TOLD_EVERY_S = 1.0

Standing = Callable[[str], str]
"""Why no server has said what a file holds, at this moment."""


class _Failure(NamedTuple):
    """When (monotonic), and why; None where the file is not to blame, but the state of its server, which is looked at
    when the reason is told. `final`: not by syntax either."""

    at: float
    reason: str | None
    final: bool


class Failures:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, policy: IndexingPolicy) -> None:
        self._policy = policy
        self._files: dict[str, _Failure] = {}
        self._servers: dict[Hashable, float] = {}
        """Servers that did not start the last time, as the source tells them apart, and when (monotonic)."""
        self._slow: set[Hashable] = set()
        """Servers that left a caller without an answer, and have answered nothing since."""
        self._crashes: dict[str, set[object]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def note(self, path: str, reason: str | None, *, final: bool) -> None:
        """A file could not be indexed; `final`: in no way. No `reason`: its server is busy or not there."""
        self._files[path] = _Failure(time.monotonic(), reason, final)

    def __iter__(self) -> Iterator[str]:
        """Files that could not be indexed the last time."""
        return iter(self._files)

    def reason(self, path: str) -> str | None:
        failure = self._files.get(path)
        return failure.reason if failure else None

    def holds(self, path: str) -> bool:
        """Whether its server is not asked about a file for now, since that failed."""
        failure = self._files.get(path)
        return failure is not None and failure.reason is not None and self._holds_still(failure.at)

    def gave_up(self, path: str) -> bool:
        """Whether a file failed in every way, and is left alone for now."""
        failure = self._files.get(path)
        return failure is not None and failure.final and self._holds_still(failure.at)

    def is_final(self, path: str) -> bool:
        """Whether a file failed in every way, however long ago."""
        failure = self._files.get(path)
        return failure is not None and failure.final

    def _holds_still(self, at: float) -> bool:
        """Whether it is too early to try again because somebody asks."""
        return time.monotonic() - at < self._policy.failure_holds_s

    def succeeded(self, path: str) -> None:
        self._files.pop(path, None)
        self._crashes.pop(path, None)

    def refuse(self, server: Hashable) -> None:
        """A server did not start: its next file would meet the same."""
        self._servers[server] = time.monotonic()

    def refuses(self, server: Hashable) -> bool:
        """Whether a server is not asked to start again for now."""
        at = self._servers.get(server)
        return at is not None and self._holds_still(at)

    def started(self, server: Hashable) -> None:
        self._servers.pop(server, None)

    def all_may_start(self) -> None:
        self._servers.clear()

    def slow(self, server: Hashable) -> None:
        """Records that a caller did not get a server's first answer in time, so that others don't wait for it."""
        self._slow.add(server)

    def is_slow(self, server: Hashable) -> bool:
        return server in self._slow

    def answered(self, server: Hashable) -> None:
        self._slow.discard(server)

    def suspect(self, paths: Iterable[str], server: object) -> list[str]:
        """One of these may have crashed its server; those that were there too often by now.

        All callers of a server hear of its end: a server counts once.
        """
        for path in paths:
            self._crashes.setdefault(path, set()).add(server)
        return [path for path in paths if len(self._crashes[path]) >= self._policy.crashes_allowed]


class Flight:
    """One question about a file. `stale`: the file changed before the answer, which then does not count."""

    __slots__ = ("done", "stale")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.stale = False

    def outdate(self) -> None:
        """Who waits for the answer asks again."""
        self.stale = True
        self.done.set()


class FileStates:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        tree: FileTree,
        index: SymbolIndex,
        source: SymbolSource,
        cache_sync: CacheSync,
        policy: IndexingPolicy,
    ) -> None:
        self._tree = tree
        self._index = index
        self._source = source
        self._cache_sync = cache_sync
        self._policy = policy
        self.pending: dict[str, None] = {}
        self.on_demand: set[str] = set()
        """Files that somebody asked for and that are no part of project-wide answers, indexed or pending."""
        self.failures = Failures(policy)
        self.by_syntax = BySyntax(source.standing)
        self.rate = Rate()
        self._cut: dict[str, None] = {}
        """Files of which some symbols are left out."""
        self._unread: set[str] = set()
        """Pending files that a caller did not get in time."""
        self._flights: dict[tuple[str, bool], Flight] = {}
        """By path, and whether the syntax is asked: that waits for no server which may hang."""
        self.improves = True
        """Whether servers may say now what is known by syntax: they were not asked since that became possible."""
        self.wakeup = anyio.Event()
        """Set when the background has something to do."""

    # --- what happens to files -----------------------------------------------------------------------------------

    def changed(self, path: str, *, is_deleted: bool) -> None:
        self.forget(path)
        if not is_deleted and self._is_awaited(path):
            self.pending[path] = None

    def forget(self, path: str) -> None:
        """Drops what is known or being asked about a file."""
        for by_syntax in (False, True):
            flight = self._flights.pop((path, by_syntax), None)
            if flight is not None:
                flight.outdate()
        if path in self._index:
            self._index.drop(path)
            self._cache_sync.unsaved.add(path)
        self.pending.pop(path, None)
        self._unread.discard(path)
        self.on_demand.discard(path)
        self.failures.succeeded(path)
        self.by_syntax.drop(path)
        self._cut.pop(path, None)

    def forget_all(self) -> None:
        """At once: file by file, 100,000 would hold up everybody for seconds."""
        for flight in self._flights.values():
            flight.outdate()
        self._flights.clear()
        self._cache_sync.unsaved.update(self._index.paths())
        self._index.clear()
        self.pending.clear()
        self.on_demand.clear()
        self.failures = Failures(self._policy)
        self.by_syntax = BySyntax(self._source.standing)
        self._cut.clear()

    def check_source(self, path: str) -> None:
        """Makes a file pending if another source answers for it now than the one that did."""
        entry = self._index.entry(path)
        if entry is None or entry.source != source_identity.today(self._source, path, entry.source):
            self.forget(path)
            if path in self._tree.files and self._is_awaited(path):
                self.pending[path] = None

    def check_search(self, path: str) -> None:
        """Makes a file pending, or not, by whether it is searched now."""
        if not self._source.is_searched(path):
            if path not in self.on_demand:  # else somebody has asked for it
                self.pending.pop(path, None)
        elif path in self._tree.files and self._source.identity(path) is not None:
            self.on_demand.discard(path)
            if path not in self._index:
                self.pending[path] = None

    def ask_for(self, path: str) -> None:
        """A file that is read on demand alone becomes pending when somebody wants it."""
        if path not in self._index and path in self._tree.files and self._source.identity(path) is not None:
            self.pending[path] = None
            self._note_reach(path)

    def ask_servers_soon(self) -> None:
        """A server may be there now: the background asks it about what is known by syntax."""
        self.improves = True
        self.wakeup.set()

    def _is_awaited(self, path: str) -> bool:
        return self._source.identity(path) is not None and self._source.is_searched(path)

    def _note_reach(self, path: str) -> None:
        if not self._source.is_searched(path):
            self.on_demand.add(path)

    # --- what becomes of questions -------------------------------------------------------------------------------

    def flight(self, path: str, *, by_syntax: bool) -> Flight | None:
        return self._flights.get((path, by_syntax))

    def begin(self, path: str, *, by_syntax: bool) -> Flight:
        """Every `begin` is followed by an `end`."""
        flight = self._flights[path, by_syntax] = Flight()
        return flight

    def end(self, path: str, flight: Flight, *, by_syntax: bool) -> None:
        if self._flights.get((path, by_syntax)) is flight:
            del self._flights[path, by_syntax]
        flight.done.set()

    def restored(self, source: str, paths: Sequence[str]) -> None:
        """The cache told what some files of one place hold."""
        is_searched, language = self._source.is_searched(paths[0]), self._syntax_language(paths[0], source)
        for path in paths:
            if not is_searched:
                self.on_demand.add(path)
            self._note_source(path, language, None)

    def done(self, path: str, source: str) -> None:
        """It is known what a file holds."""
        self.rate.count()
        self._note_source(path, self._syntax_language(path, source), self.failures.reason(path))
        self.pending.pop(path, None)
        self._unread.discard(path)
        self.failures.succeeded(path)
        self._cache_sync.unsaved.add(path)

    def _syntax_language(self, path: str, source: str) -> str | None:
        """The language of a file that is known by syntax because its server has said nothing yet."""
        grammar = self._source.grammar(path) if source_identity.is_by_syntax(source) else None
        return None if grammar is None else grammar.title

    def _note_source(self, path: str, language: str | None, reason: str | None) -> None:
        """`language`: as of `_syntax_language`."""
        if language is not None:
            self.by_syntax.add(path, language, reason)
        else:
            self.by_syntax.drop(path)
        if self._index.is_cut(path):
            self._cut[path] = None
        else:
            self._cut.pop(path, None)

    def fail(self, paths: Iterable[str], reason: str | None, *, by_syntax: bool = False) -> None:
        """Files could not be read; no `reason` where their server is to blame, whose state is looked at later."""
        for path in paths:
            self.failures.note(path, reason, final=by_syntax or self._source.grammar(path) is None)

    def fail_pending(self, paths: Iterable[str], reason: str | None) -> None:
        self.fail((path for path in paths if path in self.pending), reason)

    def waited_in_vain(self, paths: Iterable[str]) -> None:
        """A caller could wait no longer for these."""
        self._unread.update(path for path in paths if path in self.pending)

    def may_be_read(self, path: str) -> bool:
        """Whether a pending file has neither failed nor been waited for in vain."""
        return path in self.pending and path not in self._unread and not self.gave_up(path)

    # --- who is to be asked --------------------------------------------------------------------------------------

    def is_read_by_syntax(self, path: str) -> bool:
        """Whether the syntax reads a file, and not the server of its language."""
        own = self._source.identity(path)
        return own is not None and source_identity.is_instead(own)

    def unanswered(self, paths: Iterable[str]) -> set[Hashable]:
        """Servers that have not said what some of these files hold, though they may be asked; the syntax did."""
        asked = (path for path in paths if path in self.by_syntax and not self._source.is_left_alone(path))
        return {self._source.server_of(path) for path in asked}

    def source_by_syntax(self, path: str) -> str | None:
        """What the syntax is called as a source of this file."""
        own = self._source.identity(path)
        is_instead = own is not None and source_identity.is_instead(own)
        return own if is_instead else source_identity.by_syntax(self._source, path)

    def wants(self, path: str, *, by_syntax: bool) -> bool:
        """Whether the syntax, or else a server, is to be asked about a file."""
        if by_syntax:
            is_pending = path in self.pending  # first: nothing is to be found out about a file that is gone
            return is_pending and (path in self.failures or self.is_read_by_syntax(path)) and not self.gave_up(path)
        return (path in self.pending or path in self.by_syntax) and not self.failures.holds(path)

    def gave_up(self, path: str) -> bool:
        """Whether a pending file failed, and is left alone for now."""
        return self.failures.gave_up(path)

    @property
    def lacking(self) -> int:
        """Files of which a server may still say something, or something else."""
        return len(self.pending) + self.by_syntax.count(but=self._source.is_left_alone)

    # --- what answers lack ---------------------------------------------------------------------------------------

    def problems(self, most: int) -> list[Incompleteness]:
        """Files that could not be indexed (`most` of them are looked at), or by syntax only, by reason."""
        by_syntax = self.by_syntax.all_gaps(but=self._source.is_side)
        return [*self._not_known(islice(self.failures, most)), *by_syntax, *in_part(self._cut)]

    def gaps(self, paths: Iterable[str]) -> list[Incompleteness]:
        """Those of `paths` whose symbols are not all known, or by syntax only. True of what was asked for."""
        asked = list(paths)
        cut = [path for path in asked if path in self._cut] if self._cut else []
        return [*self._not_known(asked), *self.by_syntax.gaps(asked), *in_part(cut)]

    def _not_known(self, paths: Iterable[str]) -> list[Incompleteness]:
        standing: dict[Hashable, str] = {}
        asked = list(paths)
        pending = [path for path in asked if path in self.pending]
        if not pending:
            return []
        reasons = Counter(self._reason(path, standing) for path in pending)
        unread = reasons.pop(NOT_READ_YET, 0)
        others = [Incompleteness(reason, files) for reason, files in reasons.items()]
        return [*others, *not_read_yet(unread, len(asked))]

    def _reason(self, path: str, standing: dict[Hashable, str]) -> str:
        """Why the symbols of a pending file are not known. `standing`: what was said of servers in this answer."""
        if not self.failures.is_final(path) and path in self._unread:
            return NOT_READ_YET  # whatever its server said: the syntax has said nothing yet
        if path not in self.failures:
            return KEEPS_CHANGING
        reason = self.failures.reason(path)
        if reason is not None:
            return reason
        server = self._source.server_of(path)
        if server not in standing:
            standing[server] = self._source.standing(path)
        return standing[server]

    def gaps_within(self, within: str | None, asked: Iterable[str]) -> list[Incompleteness]:
        """What `gaps` says of the files that were `asked` about, and of all in a file or folder known by syntax; not of
        files in a folder whose server is left alone, nor of side languages in the whole project."""
        unknown = self._not_known(asked)
        cut = in_part(path for path in self._cut if lies_within(path, within))
        if within is None:
            by_syntax = self.by_syntax.all_gaps(but=self._source.is_side)
        else:
            by_syntax = self.by_syntax.gaps_below(within, but=self._source.is_left_alone)
        return [*unknown, *by_syntax, *cut]


class IndexProgress(msgspec.Struct, frozen=True):
    """Files of which the symbols are known, and those that wait. `per_s`: how many were read in a second, lately."""

    indexed: int
    waiting: int
    per_s: float

    @property
    def total(self) -> int:
        return self.indexed + self.waiting

    @property
    def seconds_left(self) -> float | None:
        """None where nothing tells: nothing was read lately."""
        if not self.waiting:
            return 0.0
        return self.waiting / self.per_s if self.per_s else None

    def __str__(self) -> str:
        """Files done of all, how fast, and when it will be done, as far as that is known."""
        left = self.seconds_left
        then = f", {self.per_s:.0f} files/s, {left:.0f} s left" if left else ""
        return f"{self.indexed:,} of {self.total:,} files{then}"


class Rate:
    """Counts what happens, by seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: deque[tuple[int, int]] = deque(maxlen=RATE_OVER_S + 1)

    def count(self) -> None:
        second = int(self._clock())
        if self._counts and self._counts[-1][0] == second:
            self._counts[-1] = (second, self._counts[-1][1] + 1)
        else:
            self._counts.append((second, 1))

    @property
    def per_s(self) -> float:
        """0.0 where nothing tells."""
        now = self._clock()
        recent = [(second, count) for second, count in self._counts if now - second <= RATE_OVER_S]
        return _per_s(sum(count for _, count in recent), now - recent[0][0]) if recent else 0.0


def _per_s(count: int, seconds: float) -> float:
    """0.0 where so few in so short a time say nothing: one file of 35,000 in the first second is no ten hours."""
    says_nothing = count < FEW_COUNTED and seconds < SURE_AFTER_S
    return 0.0 if says_nothing else count / max(seconds, 1.0)


@asynccontextmanager
async def telling(total: int, left: Callable[[], int]) -> AsyncGenerator[None]:
    """Tells the current call every second how many of its files are read; never fewer than before."""

    async def tell() -> None:
        began, most = anyio.current_time(), 0
        while True:
            await anyio.sleep(TOLD_EVERY_S)
            most = max(most, total - left())
            per_s = _per_s(most, anyio.current_time() - began)
            then = f", {(total - most) / per_s:.0f} s left" if per_s else ""
            report(f"reading symbols: {most:,} of {total:,} files{then}", most / total)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        yield
        tasks.cancel_scope.cancel()


class _Why(NamedTuple):
    """`reason`: what was wrong with the file; None where its server was, which is looked at when it is told."""

    language: str
    reason: str | None


class BySyntax:
    """Files whose symbols were read by syntax: their language, and why no language server said them."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._why: dict[str, _Why] = {}
        self._alike: dict[_Why, dict[str, None]] = {}
        self._shared: dict[_Why, _Why] = {}
        """One for all files that are alike: the garbage collector looks at each."""

    def __contains__(self, path: str) -> bool:
        return path in self._why

    def paths(self, *, but: Callable[[str], bool] = lambda _path: False) -> list[str]:
        """All of them, without languages of which a file is `but`."""
        return [path for alike in self._alike.values() if not but(next(iter(alike))) for path in alike]

    def count(self, *, but: Callable[[str], bool]) -> int:
        return sum(len(alike) for alike in self._alike.values() if not but(next(iter(alike))))

    def add(self, path: str, language: str, reason: str | None) -> None:
        self.drop(path)
        why = _Why(language, reason)
        if why not in self._alike:
            self._alike[why] = {}
            self._shared[why] = why
        self._why[path] = self._shared[why]
        self._alike[why][path] = None

    def drop(self, path: str) -> None:
        why = self._why.pop(path, None)
        if why is not None:
            alike = self._alike[why]
            del alike[path]
            if not alike:
                del self._alike[why], self._shared[why]

    def gaps(self, paths: Iterable[str]) -> list[Incompleteness]:
        """Those of `paths`, by reason."""
        found: dict[_Why, tuple[str, int]] = {}
        for path in paths:
            why = self._why.get(path)
            if why is not None:
                first, files = found.get(why, (path, 0))
                found[why] = first, files + 1
        return [self._gap(why, first, files) for why, (first, files) in found.items()]

    def all_gaps(self, *, but: Callable[[str], bool]) -> list[Incompleteness]:
        """All of them, by reason, without languages of which a file is `but`."""
        firsts = [(why, next(iter(alike)), len(alike)) for why, alike in self._alike.items()]
        return [self._gap(why, first, files) for why, first, files in firsts if not but(first)]

    def _gap(self, why: _Why, first: str, files: int) -> Incompleteness:
        return Incompleteness(why.reason or self._standing(first), files, why.language)

    def gaps_below(self, folder: str, *, but: Callable[[str], bool]) -> list[Incompleteness]:
        """Those in a folder (root-relative) or right at this path; of a folder, without languages that are `but`."""
        below = folder + "/"
        return self.gaps(path for path in self._why if path == folder or (path.startswith(below) and not but(path)))
