"""Indexer: keeps a SymbolIndex in step with the files of one root, by need first and in the background for the rest.

Callers make files certain by `ensure`; `run` works through the rest. What no language server says is read by syntax,
where there is a grammar: the server is not installed, fails, breaks on this file, or leaves a caller waiting for its
first answer. Such files are known, with a gap that says why. No caller waits for them again: `run` alone asks the
server about them, at once when it becomes available, else ever more rarely while nothing comes of it; an edit makes it
ask about the edited file alone. Which server answers is decided by the source.
"""

import math
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable, Sequence, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio

from serena_central.core.pacing import Pace, paced
from serena_central.files.tree import Change, FileTree
from serena_central.store.index_cache import IndexCache
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.cache_sync import CacheSync
from serena_central.symbols.indexing.file_states import FileStates, IndexProgress, telling
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.indexing.reading import FileReader
from serena_central.symbols.indexing.symbol_source import SymbolSource

MAPPED_AT_ONCE = 1000
"""Names: a millisecond."""

IMPROVED_AT_ONCE = 200
"""Files known by syntax that servers are asked about before the background looks whether others came meanwhile."""


MANY_READ = 100
"""Files that the background has read when `on_filled` is called."""


async def _nothing() -> None:
    """What there is to do where nobody follows."""


class Priority:
    """Background work on one root yields to callers for a moment. Belongs to the event loop's thread."""

    def __init__(self, policy: IndexingPolicy) -> None:
        self._policy = policy
        self._callers = 0
        self._quiet: anyio.Event | None = None
        """Set when no caller is left; of those who wait for that."""
        self._goes_on_until = -math.inf

    @contextmanager
    def caller(self) -> Generator[None]:
        """While somebody waits for an answer about this root, background work gives way."""
        self._callers += 1
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers and self._quiet is not None:
                self._quiet.set()
                self._quiet = None

    async def give_way(self) -> None:
        """Waits for callers: what works in the background does so before each question. Whoever waited as long as the
        policy allows then works for as long: callers that come all the time take half of the time at most."""
        if anyio.current_time() < self._goes_on_until:
            return
        with anyio.move_on_after(self._policy.gives_way_s) as waited:
            while self._callers:
                if self._quiet is None:
                    self._quiet = anyio.Event()
                await self._quiet.wait()
        if waited.cancelled_caught:
            self._goes_on_until = anyio.current_time() + self._policy.gives_way_s


class Indexer:
    """Fills one index. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        source: SymbolSource,
        cache: IndexCache | None = None,
        policy: IndexingPolicy | None = None,
    ) -> None:
        self.policy = policy or IndexingPolicy()
        self.priority = Priority(self.policy)
        self._tree = tree
        self._index = index
        self._source = source
        self._cache_sync = CacheSync(index, cache)
        self._states = FileStates(tree, index, source, self._cache_sync, self.policy)
        self._reader = FileReader(
            root, tree, index, source, self._states, self._cache_sync, self.priority.give_way, self.policy
        )
        self._doubted: dict[str, None] = {}
        """Files of which is not known who answers for them now."""
        self._takes_in = False
        self.on_filled: Callable[[], Awaitable[None]] = _nothing
        """Called when the background has read many files."""
        self._unsettled = anyio.Event()
        """Set when `_settle_all` has something to do."""

    @property
    def is_complete(self) -> bool:
        """Whether the symbols of all files are known."""
        return not self._states.pending and not self._doubted

    @property
    def progress(self) -> IndexProgress:
        """Each file is counted once. Of some it is not known yet whether anybody reads them: those wait, too."""
        pending = self._states.pending
        doubted = sum(path not in pending and path not in self._index for path in self._doubted)
        return IndexProgress(len(self._index), len(pending) + doubted, self._states.rate.per_s)

    def pending_paths(self) -> list[str]:
        return list(self._states.pending)

    def is_pending(self, path: str) -> bool:
        """Whether the symbols of a file are not known yet, though somebody may read them."""
        return path in self._states.pending

    @property
    def on_demand(self) -> Set[str]:
        """Files that somebody asked for, and that are no part of project-wide answers."""
        return self._states.on_demand

    def gave_up(self, path: str) -> bool:
        """Whether a pending file failed, and is left alone for now."""
        return self._states.gave_up(path)

    # --- what happens to files -----------------------------------------------------------------------------------

    async def load(self) -> None:
        """Takes over the cache for files that are as they were, and marks all others pending."""
        today = partial(source_identity.today, self._source)
        await self._cache_sync.restore(self._tree.files, self._source.place, today, self._states.restored)
        self.doubt(path for path in self._tree.files if path not in self._index)
        await self.settle()

    def changed(self, changes: Sequence[Change]) -> None:
        """Takes note of what happened to files; to be subscribed to the tree."""
        for change in changes:
            self._states.changed(change.path, is_deleted=change.kind == "deleted")
        self._states.wakeup.set()

    def doubt(self, paths: Iterable[str]) -> None:
        """Has it checked who answers for files now: those of which another server did are asked about again; those
        that are known by syntax stay known, and are asked about in the background."""
        self._doubted.update(dict.fromkeys(paths))
        self._unsettled.set()
        self.improve()

    def take_in(self) -> None:
        """Other files than before may be searched: `run` sees which are."""
        self._takes_in = True
        self._unsettled.set()
        self.improve()

    def improve(self) -> None:
        """A server may be available now: it is asked soon about what is known by syntax, in the background."""
        self._states.failures.all_may_start()
        self._states.ask_servers_soon()

    async def settle(self) -> None:
        """Until it is known who answers for each file. They may be 100,000: others get their turn meanwhile."""
        pace = Pace()
        while self._doubted:
            await pace.turn()
            if not self._doubted:
                break
            path, _ = self._doubted.popitem()
            self._states.check_source(path)

    def ask_again(self) -> None:
        """Forgets all files, and asks about each again."""
        self._states.forget_all()
        self.doubt(self._tree.files)

    # --- for callers ---------------------------------------------------------------------------------------------

    async def ensure(self, paths: Iterable[str], *, most_s: float = math.inf) -> list[Incompleteness]:
        """Indexes those of `paths` that are not; returns what could not be, not in `most_s`, or by syntax only."""
        wanted = list(paths)
        with anyio.move_on_after(most_s) as bound:
            await self._ensure(wanted)
        if bound.cancelled_caught:
            self._states.waited_in_vain(wanted)
        return self.gaps(wanted)

    async def ensure_in_time(self, paths: Iterable[str], *, began: float) -> list[Incompleteness]:
        """As `ensure`, for a caller that waits since `began`, and rather has what is known than all of it late."""
        wanted = list(paths)
        for _ in range(self.policy.attempts):
            await self._ensure_in_time(wanted, began)
            # Nothing is waited for from here on: what was done may be changed again in any turn of others.
            wanting = [path for path in wanted if self._states.may_be_read(path)]
            if not wanting:
                break
        return self.gaps(wanted)

    async def _ensure_in_time(self, paths: Sequence[str], began: float) -> None:
        by_syntax: list[str] = []
        by_servers: list[str] = []
        async for path in paced(paths):
            (by_servers if self._source.grammar(path) is None else by_syntax).append(path)
        bounds = [(by_syntax, self.policy.deadline_s), (by_servers, self.policy.patient_s)]
        asked = [
            partial(self.ensure, some, most_s=began + most_s - anyio.current_time()) for some, most_s in bounds if some
        ]
        if len(asked) == 1:
            await asked[0]()
        elif asked:
            async with anyio.create_task_group() as tasks:
                for ask in asked:
                    tasks.start_soon(ask)

    async def complete(self, paths: Iterable[str]) -> list[Incompleteness]:
        """The same with time: asks servers at once, and as long as they take, about files known by syntax, too."""
        wanted = list(paths)
        await self._ensure(wanted)
        known_by_syntax = [path for path in wanted if path in self._states.by_syntax]
        await self._reader.ask_servers(known_by_syntax, in_background=True)
        return self.gaps(wanted)

    async def _ensure(self, wanted: list[str]) -> None:
        await self.settle()
        async for path in paced(wanted):
            self._states.ask_for(path)
        pending = self._states.pending
        for _ in range(self.policy.attempts):
            waiting = [path for path in wanted if path in pending and not self.gave_up(path)]
            if not waiting:
                break
            # Again: a file that was done may have changed while another server was asked about the rest.
            async with telling(len(wanted), lambda: sum(path in pending for path in wanted)):
                await self._reader.read(waiting)

    def gaps(self, paths: Iterable[str]) -> list[Incompleteness]:
        """Those of `paths` whose symbols are not known, or by syntax only. True of what `ensure` was asked for."""
        return self._states.gaps(paths)

    def problems(self, most: int) -> list[Incompleteness]:
        """Files that could not be indexed (`most` of them are looked at), or by syntax only, by reason."""
        return self._states.problems(most)

    def gaps_within(self, within: str | None, asked: Iterable[str]) -> list[Incompleteness]:
        """What `gaps` says of the files that were `asked` about, and of all in a file or folder known by syntax; not of
        files in a folder whose server is left alone."""
        return self._states.gaps_within(within, asked)

    def has_grammar(self, path: str) -> bool:
        """Whether a file's symbols can be had by syntax."""
        return self._source.grammar(path) is not None

    def has_failed(self, path: str) -> bool:
        """Whether a pending file failed in every way the last time, however long ago that was."""
        return self._states.failures.is_final(path)

    async def map_names(self, *, gives_way: bool = False) -> None:
        """Until every name that the cache brought leads to its files; others get their turn meanwhile."""
        pace = Pace()
        while self._index.map_names(MAPPED_AT_ONCE):
            if await pace.turn() and gives_way:
                await self.priority.give_way()

    # --- in the background ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fills the index for ever; belongs to the project's task group."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_settled)
            await self._keep_filled()

    async def _keep_settled(self) -> None:
        """Beside what fills the index, which may wait for servers for minutes: files that nobody reads must not count
        as pending for so long."""
        while True:
            await self._unsettled.wait()
            self._unsettled = anyio.Event()
            await self._settle_all()
            self._states.wakeup.set()

    async def _settle_all(self) -> None:
        await self.settle()
        if self._takes_in:
            self._takes_in = False
            async for path in paced(list(self._tree.files)):
                self._states.check_search(path)

    async def _keep_filled(self) -> None:
        await self.map_names(gives_way=True)
        states, policy = self._states, self.policy
        pause_s = policy.failure_holds_s
        due = anyio.current_time() + pause_s
        while True:
            states.wakeup = anyio.Event()
            await self.priority.give_way()  # who changed something asks about it, too
            await self._settle_all()
            new = self._unread()
            await self._fill(new)
            # What came meanwhile, and what was being read when it was doubted who answers: servers are asked about what
            # is known only when this is known, too.
            again = self._untried()
            await self._fill(again, after=len(new))
            if any(states.failures.is_final(path) for path in new):
                pause_s = policy.failure_holds_s
                due = min(due, anyio.current_time() + pause_s)
            await self._save_when_quiet()
            improves = states.improves
            if improves:
                states.improves = False
                await self._improve([*new, *again])
            if improves or len(new) >= MANY_READ:
                await self.on_filled()
            lacking = states.lacking
            with anyio.move_on_after(due - anyio.current_time() if lacking else None) as waited:
                await states.wakeup.wait()
            if waited.cancelled_caught:
                pending = self.pending_paths()
                await self._fill(pending)
                await self._improve(pending)
                in_vain = states.lacking >= lacking
                pause_s = min(pause_s * 2, policy.longest_pause_s) if in_vain else policy.failure_holds_s
            if waited.cancelled_caught or not lacking:
                due = anyio.current_time() + pause_s

    def _unread(self) -> list[str]:
        """Pending files that are not known to be unreadable."""
        return [path for path in self._states.pending if not self._states.failures.is_final(path)]

    def _untried(self) -> list[str]:
        """Pending files that nobody has tried to read since they last changed."""
        return [path for path in self._states.pending if path not in self._states.failures]

    async def _fill(self, paths: Sequence[str], *, after: int = 0) -> None:
        """Reads files, `after` so many of the same project."""
        by_syntax: list[str] = []
        by_servers: list[str] = []
        async for path in paced(list(paths)):
            (by_syntax if self._states.is_read_by_syntax(path) else by_servers).append(path)
        batch = self.policy.save_every_files
        is_patient = after + len(by_servers) < self.policy.many_files
        slow: set[Hashable] = set()
        async with anyio.create_task_group() as saving:  # beside the next files, which do not wait for it
            for files in (by_syntax, by_servers):  # what the syntax reads waits for no server
                for start in range(0, len(files), batch):
                    some = files[start : start + batch]
                    if slow:
                        unasked = [path async for path in paced(some) if self._source.server_of(path) in slow]
                        await self._reader.read_by_syntax(unasked)
                    await self._reader.read(some, in_background=True, is_patient=is_patient)
                    if not is_patient:
                        slow |= self._states.unanswered(some)
                    if len(self._cache_sync.unsaved) >= batch:
                        saving.start_soon(self.save)
        if slow:
            self._states.ask_servers_soon()

    async def _improve(self, read: Iterable[str]) -> None:
        """Has servers say what is known by syntax, where they are not left alone. No caller waits for that, so that
        files that came since others were `read` go first."""
        paths, known = self._states.by_syntax.paths(but=self._source.is_left_alone), set(read)
        for start in range(0, len(paths), IMPROVED_AT_ONCE):
            if not known.issuperset(self._unread()):
                self._states.ask_servers_soon()
                return
            await self._reader.ask_servers(paths[start : start + IMPROVED_AT_ONCE], in_background=True)
            is_last = start + IMPROVED_AT_ONCE >= len(paths)
            if len(self._cache_sync.unsaved) >= (1 if is_last else self.policy.save_every_files):
                await self.save()

    async def _save_when_quiet(self) -> None:
        with anyio.move_on_after(self.policy.save_after_s) as quiet:
            if self._cache_sync.unsaved:
                await self._states.wakeup.wait()
        if quiet.cancelled_caught:
            await self.save()

    async def save(self) -> None:
        """Writes what changed since the last time to the cache."""
        await self._cache_sync.save()
