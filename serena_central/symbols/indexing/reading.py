"""Reads files for the index: by their language servers, else by syntax.

One way down: group the files by server, lease the server, ask, put the answers into the index. A file that changes
while it is asked about is asked about again: an answer counts only if nothing was reported in between.
"""

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.core.errors import (
    LanguageServerError,
    PathError,
    ServerBeingInstalled,
    ServerCrashed,
    ServerNotInstalled,
    ServerStartFailed,
    ServerUnavailable,
)
from serena_central.core.pacing import paced
from serena_central.files.stamp import Stamp
from serena_central.files.tree import FileTree
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.cache_sync import CacheSync
from serena_central.symbols.indexing.file_states import FileStates
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.indexing.symbol_source import FileServer, Outline, Read, SymbolSource
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.reader import MOST_WORKERS

MANY_SYMBOLS = 400
"""Of one container: so many are taken over in a millisecond."""

SYNTAX_FILES = 32
"""Read by syntax in one go: fewer messages, and some 50 ms of work, for which background work does not give way …"""

SYNTAX_BYTES = 500_000
"""… but no more than this, or one file: all are in memory at once …"""

SYNTAX_AT_ONCE = 2 * MOST_WORKERS
"""… and so many times at once: for each worker one that it parses, and one that waits for it."""

_NOT_STARTED = ServerNotInstalled, ServerBeingInstalled, ServerStartFailed, ServerUnavailable
"""What a server's next file would meet, too; all else may be over at the next question."""


@dataclass
class _Group:
    """Files that one server is asked about. A group waits for the first answer until `patience` ends,
    unless it `is_patient`."""

    server: Hashable
    paths: list[str]
    requests: int
    in_background: bool
    is_patient: bool
    began: float = field(default_factory=anyio.current_time)
    patience: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    has_answered: bool = False


class FileReader:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        source: SymbolSource,
        states: FileStates,
        cache_sync: CacheSync,
        give_way: Callable[[], Awaitable[None]],
        policy: IndexingPolicy,
    ) -> None:
        self._root = root
        self._tree = tree
        self._index = index
        self._source = source
        self._states = states
        self._cache_sync = cache_sync
        self._give_way = give_way
        self._policy = policy

    async def read(self, paths: Sequence[str], *, in_background: bool = False, is_patient: bool = True) -> None:
        """Reads pending files: by syntax those that their servers can't know, the others by their servers, then by
        syntax what no server said. If the background `is_patient`, it waits for servers as long as they take."""
        states = self._states
        by_syntax = [path for path in paths if path in states.pending and states.is_read_by_syntax(path)]
        await self._read_by_syntax(by_syntax, in_background=in_background)
        unread = [path for path in paths if path in states.pending]
        await self.ask_servers(unread, in_background=in_background, is_patient=is_patient)
        left = [path for path in paths if path in states.pending and not states.gave_up(path)]
        await self._read_by_syntax(left, in_background=in_background)

    async def read_by_syntax(self, paths: Sequence[str]) -> None:
        """Reads those pending files that have a grammar by syntax, in the background, without asking their servers."""
        readable = [path for path in paths if self._source.grammar(path) is not None]
        self._states.fail_pending(readable, None)
        await self._read_by_syntax(readable, in_background=True)

    # --- by language servers -------------------------------------------------------------------------------------

    async def ask_servers(self, paths: Iterable[str], *, in_background: bool, is_patient: bool = True) -> None:
        """Asks the servers about files, those of one server under one lease. Only the background is patient."""
        requests = self._policy.background_requests if in_background else self._policy.callers_requests
        of_server: dict[Hashable, list[str]] = {}
        async for path in paced(list(paths)):
            if self._states.is_read_by_syntax(path):
                continue
            if self._source.is_left_alone(path):
                self._states.fail_pending([path], None)
            elif not self._states.failures.holds(path):
                of_server.setdefault(self._source.server_of(path), []).append(path)
        async with anyio.create_task_group() as tasks:  # a server that is slow to start holds up no other's files
            for server, files in of_server.items():
                waits = (in_background and is_patient) or self._source.grammar(files[0]) is None
                failures = self._states.failures
                if failures.refuses(server) or (not waits and failures.is_slow(server)):
                    self._states.fail_pending(files, None)
                else:
                    tasks.start_soon(self._ask_in_time, _Group(server, files, requests, in_background, waits))

    async def _ask_in_time(self, group: _Group) -> None:
        with group.patience:
            if not group.is_patient:
                is_large = len(self._states.pending) > self._policy.many_files
                brief = is_large and not group.in_background
                patience_s = self._policy.brief_patience_s if brief else self._policy.patience_s
                group.patience.deadline = group.began + patience_s
            try:
                await self._ask_server(group)
            except LanguageServerError as error:
                not_started = isinstance(error, _NOT_STARTED)
                if not_started:
                    self._states.failures.refuse(group.server)
                self._states.fail_pending(group.paths, None if not_started else str(error))
        if group.patience.cancelled_caught:
            if not group.has_answered:
                self._states.failures.slow(group.server)
            self._states.fail_pending(group.paths, None)
            self._states.ask_servers_soon()

    async def _ask_server(self, group: _Group) -> None:
        """Asks under one lease; again under another one where the server crashed.

        Raises:
            LanguageServerError
        """
        for retries_left in reversed(range(self._source.read_retries + 1)):
            server: FileServer | None = None
            try:
                async with self._source.server_for(group.paths[0]) as server:
                    self._states.failures.started(group.server)
                    await self._ask_all(group, server)
                return
            except (ServerCrashed, ServerUnavailable):
                if not retries_left or server is None or not server.lost:
                    raise

    async def _ask_all(self, group: _Group, server: FileServer) -> None:
        """Asks about the files of a group, several at a time.

        Raises:
            ServerCrashed
        """
        queue = iter(group.paths)
        asking: set[str] = set()
        crash: ServerCrashed | None = None

        async def worker() -> None:
            nonlocal crash
            for path in queue:
                if group.in_background:
                    await self._give_way()
                asking.add(path)
                try:
                    await self._ask_until_certain(path, group, server)
                except ServerCrashed as error:
                    crash = error
                    tasks.cancel_scope.cancel()
                    return
                asking.discard(path)
                if group.in_background:
                    await self._save_when_due()

        async with anyio.create_task_group() as tasks:
            for _ in range(min(group.requests, len(group.paths))):
                tasks.start_soon(worker)
        if crash is not None:
            # A file that was there twice is left alone, so that the rest is read.
            self._states.fail(self._states.failures.suspect(asking, server.run), str(crash))
            raise crash

    async def _ask_until_certain(self, path: str, group: _Group, server: FileServer) -> None:
        for _ in range(self._policy.attempts):
            if not self._states.wants(path, by_syntax=False):
                return
            flight = self._states.flight(path, by_syntax=False)
            if flight is not None:
                await flight.done.wait()
            else:
                await self._ask(path, group, server)

    async def _ask(self, path: str, group: _Group, server: FileServer) -> None:
        states = self._states
        flight = states.begin(path, by_syntax=False)
        source, now = self._source.identity(path), time.time_ns()
        try:
            # From the disk, not from the tree: what no event tells (a hard link's change) must show at the next use.
            stamp = Stamp.of((self._root / path).stat())
            known = self._tree.files.get(path)
            if known is None or source is None:
                states.forget(path)
                return
            stamp = known if known == stamp else stamp  # one for both
            outline = await server.outline(path)
            self._note_answer(group)
            file = await _flat(outline)
            if flight.stale:
                return
            try:
                self._index.put(path, file, stamp=stamp, indexed_at_ns=now, source=source)
            except ValueError as error:  # costs this file its symbols, not all others theirs
                states.fail([path], f"its language server reported symbols that cannot be kept: {error}.")
            else:
                states.done(path, source)
        except ServerCrashed:
            raise
        except (LanguageServerError, PathError, OSError) as error:
            if not flight.stale:
                states.fail([path], str(error))
        finally:
            states.end(path, flight, by_syntax=False)

    def _note_answer(self, group: _Group) -> None:
        if not group.is_patient and not group.has_answered:
            group.patience.deadline = group.began + max(self._policy.answer_s, self._policy.patience_s)
        group.has_answered = True
        self._states.failures.answered(group.server)

    async def _save_when_due(self) -> None:
        """Saves the results of background work, without blocking other tasks."""
        if self._cache_sync.unsaved and self._cache_sync.seconds_since_save >= self._policy.save_every_s:
            await self._cache_sync.save()

    # --- by syntax -----------------------------------------------------------------------------------------------

    async def _read_by_syntax(self, paths: Sequence[str], *, in_background: bool) -> None:
        queue = self._batches(paths)

        async def worker() -> None:
            for batch in queue:
                await self._parse_until_certain(batch)
                if in_background:
                    await self._save_when_due()
                    await self._give_way()  # not before the first: parsers start while a first find looks for files

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

    async def _parse_until_certain(self, paths: Sequence[str]) -> None:
        for _ in range(self._policy.attempts):
            wanted = [path for path in paths if self._states.wants(path, by_syntax=True)]
            if not wanted:
                return
            flights = {path: self._states.flight(path, by_syntax=True) for path in wanted}
            await self._parse([path for path, flight in flights.items() if flight is None])
            for flight in flights.values():
                if flight is not None:
                    await flight.done.wait()

    async def _parse(self, paths: Sequence[str]) -> None:
        states = self._states
        flights = {path: states.begin(path, by_syntax=True) for path in paths}
        sources, now = {path: states.source_by_syntax(path) for path in paths}, time.time_ns()
        try:
            found = await self._source.read_by_syntax(paths)
        except LanguageServerError as error:
            found = [error] * len(paths)
        finally:
            for path, flight in flights.items():
                states.end(path, flight, by_syntax=True)
        for path, read in zip(paths, found, strict=True):
            source, known = sources[path], self._tree.files.get(path)
            if flights[path].stale or (path not in states.pending and path in self._index):
                continue  # it changed, or its server was quicker
            if known is None or source is None:
                states.forget(path)
            elif isinstance(read, Read):
                stamp = known if known == read.stamp else read.stamp  # one for both
                self._index.put_packed(path, read.symbols, stamp=stamp, indexed_at_ns=now, source=source)
                states.done(path, source)
            else:
                self._fail_by_syntax(path, source, read)

    def _fail_by_syntax(self, path: str, source: str, error: LanguageServerError | PathError) -> None:
        """Says what was wrong with the file's server, too, if that was asked first."""
        first = ""
        if not source_identity.is_instead(source):
            first = self._states.failures.reason(path) or self._source.standing(path)
        self._states.fail([path], f"{first} Nor by syntax: {error}" if first else str(error), by_syntax=True)


async def _flat(outline: Outline) -> FileSymbols:
    """The symbols of a file as the index keeps them. Of generated code, which has thousands, in a thread."""
    if len(outline.symbols) < MANY_SYMBOLS and all(len(one.children) < MANY_SYMBOLS for one in outline.symbols):
        return flatten(outline.symbols, cut=outline.cut)
    return await anyio.to_thread.run_sync(partial(flatten, outline.symbols, cut=outline.cut))
