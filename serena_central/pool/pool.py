"""The pool of language servers: one per key, leased and never owned, shared by all callers of the same key.

The interface of this package: it owns the tasks, the slots and the reaper's timer. It knows roots, but neither sessions
nor projects.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectSendStream

from serena_central.config.policies import PoolPolicy
from serena_central.core.errors import ServerCrashed, ServerUnavailable
from serena_central.core.event_kinds import ServerLeftover, ServerMemory
from serena_central.core.events import EventBus, Severity
from serena_central.core.periodic import contained, repeat
from serena_central.core.places import Places
from serena_central.core.rest import rest
from serena_central.core.running_time import running_time
from serena_central.core.tracing import measured_call, phase
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import LEAST_MEMORY_MB, Launch, locate
from serena_central.pool.breaker import BreakerState
from serena_central.pool.budget import CachedMemory, OtherProcess, free_memory_bytes, machine_memory_bytes
from serena_central.pool.interest import Interests
from serena_central.pool.key import ServerKey, WantedServer
from serena_central.pool.key_history import KeyHistory
from serena_central.pool.ledger import OWNER_VARIABLE, Ledger
from serena_central.pool.node_memory import NodeMemory
from serena_central.pool.reaper import Reaper
from serena_central.pool.run import BACKGROUND, Run
from serena_central.pool.slot import NOT_RUNNING, Slot
from serena_central.pool.snapshot import ServerSnapshot, of_slot
from serena_central.pool.state import Cause
from serena_central.processes import scratch
from serena_central.processes.usage import Usage

logger = logging.getLogger(__name__)

LOOKED_AT_S = 1.0
"""Interval at which calls that wait for silent language servers are checked, in seconds."""

IDLE_FACTOR = 5
"""While no call waits it is so many times as long: earlier there is nothing to say of one that begins to."""

T = TypeVar("T")
Work = Callable[[], Awaitable[None]]


class Locate(Protocol):
    """`locate`, or what stands in for it."""

    def __call__(
        self, spec: ServerSpec, root: Path, places: Places, *, untrusted: Path | None, memory_mb: int
    ) -> Launch: ...


class Lease:
    """The right to use a language server while the block is open."""

    __slots__ = ("_again", "_run", "_slot")

    def __init__(self, slot: Slot, again: Callable[[], Slot]) -> None:
        """`again` tells of which slot it is when settings have changed during a start."""
        self._slot = slot
        self._again = again
        self._run: Run | None = None

    async def __aenter__(self) -> LanguageServer:
        rest.stir()
        slot = self._slot
        run = slot.usable_run()
        if run is not None:
            slot.take(run)
        else:
            with phase("start", slot.key.server):
                while (run := await slot.acquire()) is None:
                    slot = self._slot = self._again()
        self._run = run
        run.holders[self] = measured_call() or BACKGROUND, slot.now
        return run.server

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._run is not None
        del self._run.holders[self]
        self._slot.give_back(self._run, error)

    def waiting(self) -> AbstractContextManager[None]:
        """Around what waits for answers.

        Raises:
            ServerSilent
        """
        assert self._run is not None
        return self._run.silence.waiting()

    @property
    def lost(self) -> bool:
        """The leased server came to its end meanwhile."""
        return self._run is not None and not self._run.usable()


def _budget_bytes(policy: PoolPolicy) -> int:
    return (policy.memory_budget_mb or 0) << 20 or machine_memory_bytes() // 2


class LanguageServerPool:
    """Leases language servers. All methods belong to the event loop's thread; none blocks it."""

    def __init__(
        self,
        *,
        bus: EventBus,
        places: Places,
        policy: PoolPolicy,
        locate: Locate = locate,
        clock: Callable[[], float] = running_time,
        usage: Callable[[LanguageServer], Usage] = LanguageServer.usage,
        free_memory: Callable[[], int] = free_memory_bytes,
    ) -> None:
        """`locate` finds a server's program and `usage` measures it, in threads; `clock` is in seconds and never goes
        back; `free_memory` is what the machine has left, in bytes."""
        self._bus = bus
        self._places = places
        self.policy = policy
        self.memory_budget_bytes = _budget_bytes(policy)
        self.server_memory_mb = max(LEAST_MEMORY_MB, self.memory_budget_bytes // 2 >> 20)
        """The memory limit passed to one server, if it accepts one, so that it leaves memory to the others."""
        self._locate = locate
        self._clock = clock
        self._slots: dict[ServerKey, Slot] = {}
        self._interests = Interests(session_quiet_s=policy.session_quiet_s, clock=clock)
        self._ledger = Ledger(places.ledger_file)
        self._reaper = Reaper(
            self._slots,
            policy=policy,
            budget_bytes=self.memory_budget_bytes,
            interests=self._interests,
            ledger=self._ledger,
            clock=clock,
            usage=usage,
            warn=self._warn,
            free_memory=free_memory,
        )
        self._on_watching: list[Callable[[], None]] = []
        self._orders: MemoryObjectSendStream[Work] | None = None  # while the pool runs
        self._shield = anyio.CancelScope(shield=True)
        self._open = False

    def take_policy(self, policy: PoolPolicy) -> None:
        """Applies other bounds to what is asked and started from now on; servers that run keep their own for calls and
        pings."""
        self.policy = self._reaper.policy = policy
        self.memory_budget_bytes = self._reaper.budget_bytes = _budget_bytes(policy)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Ends what an earlier server left, then serves until cancelled; all process trees are gone when it returns."""
        for pid in await anyio.to_thread.run_sync(self._ledger.sweep):
            message = f"killed process {pid}, left over from an earlier server"
            self._bus.publish(ServerLeftover(message=message, severity=Severity.WARNING, pid=pid))
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._own_work)
            tasks.start_soon(contained, "removing old temporary folders", self._sweep_temporary)
            tasks.start_soon(self._look_at_silence)
            self._open = True
            task_status.started()
            try:
                await repeat("sweeping language servers", self.sweep, every_s=self.policy.idle_check_s)
            finally:
                self._close()

    async def _sweep_temporary(self) -> None:
        """Removes the temporary folders of what was killed; beside all else, for there may be much in them."""
        await anyio.to_thread.run_sync(scratch.sweep, self._places.temporary, abandon_on_cancel=True)

    def lease(self, wanted: WantedServer, again: Callable[[], WantedServer] | None = None) -> Lease:
        """Entering waits for the server's start, where it does not run. `again` tells what is wanted in its place if
        the start is ended because settings have changed; None: the same.

        Raises:
            ServerUnavailable, ServerNotInstalled, ServerStartFailed: on entering, and what `again` raises.
        """
        return Lease(self._slot(wanted), lambda: self._slot(again() if again is not None else wanted))

    async def read(
        self,
        wanted: WantedServer,
        operation: Callable[[LanguageServer], Awaitable[T]],
        again: Callable[[], WantedServer] | None = None,
    ) -> T:
        """Runs `operation` under a lease, again on a new server when its server crashed or was replaced meanwhile.

        Only for what may be repeated. Raises what a lease raises and what `operation` raises.
        """
        retries_left = self.policy.read_retries
        while True:
            lease = self.lease(wanted, again)
            try:
                async with lease as server:
                    with lease.waiting():
                        return await operation(server)
            except (ServerCrashed, ServerUnavailable) as error:
                if not (retries_left and lease.lost and self._open):
                    raise
                logger.info("%s: repeating a read: %s", wanted.spec.name, error)
            retries_left -= 1

    def files_changed(self, root: Path, changes: Sequence[FileEvent]) -> None:
        """Notifies every run of that root, including those that start or drain, before any later request.

        One for a project that is not trusted ends at once when a file comes with which it might execute something.
        """
        for slot in self._slots.values():
            if slot.key.root == root:
                if slot.key.untrusted and (file := _forbidden(slot.wanted.spec, changes)):
                    slot.expire(Cause.NOT_TRUSTED, f"{file.name} was added and may name programs")
                    continue
                for run in slot.runs:
                    run.files_changed(changes)

    def files_changed_near(self, around: Path, own: Collection[Path], changes: Sequence[FileEvent]) -> None:
        """Tells the runs of all other roots below `around`: of a folder whose projects use each other's files."""
        roots = {slot.key.root for slot in self._slots.values() if slot.key.root.is_relative_to(around)}
        for root in roots.difference(own):
            self.files_changed(root, changes)

    def watched_folders(self, roots: Collection[Path]) -> set[Path]:
        """Folders that the servers of these roots have asked to hear of, inside and outside of them."""
        return {folder for run in self._runs_of(roots) for folder in run.watched_folders}

    def oldest_ns(self, roots: Collection[Path]) -> int | None:
        """Since when the servers of these roots may have read files, by the clock that those are stamped with."""
        return min((run.created_ns for run in self._runs_of(roots) if run.created_ns is not None), default=None)

    def has_runs(self, roots: Collection[Path], around: Path | None) -> bool:
        """Whether anything runs that is notified of changes in these roots, or near them (`files_changed_near`)."""
        near = (slot.runs for slot in self._slots.values() if around and slot.key.root.is_relative_to(around))
        return any(self._runs_of(roots)) or any(near)

    def on_watching(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` when a server asks to hear of other folders than before. Returns the way to end it."""
        self._on_watching.append(listener)
        return lambda: self._on_watching.remove(listener)

    def _runs_of(self, roots: Collection[Path]) -> Iterator[Run]:
        return (run for slot in self._slots.values() if slot.key.root in roots for run in slot.runs)

    def _watching(self) -> None:
        for listener in tuple(self._on_watching):
            listener()

    def attach(self, root: Path) -> None:
        """One more session is interested in the root's servers."""
        self._interests.attach(root)

    def detach(self, root: Path) -> None:
        self._interests.detach(root)

    def touch(self, root: Path) -> None:
        """A session has called, with or without need of a language server."""
        self._interests.touch(root)

    @property
    def is_leased(self) -> bool:
        """Whether anybody uses a language server at the moment, the background included."""
        return any(run.holders for slot in self._slots.values() for run in slot.runs)

    def snapshot(self) -> list[ServerSnapshot]:
        """All servers as they are now, memory as measured last; in the order of their first use."""
        now, unix_now = self._clock(), time.time()
        return [
            shown
            for slot in self._slots.values()
            for shown in of_slot(slot, attached=self._interests.attached(slot.key.root), now=now, unix_now=unix_now)
        ]

    def standing(self, key: ServerKey) -> str:
        """How it stands with a key's server, for people: a clause without its subject and its end."""
        slot = self._slots.get(key)
        return slot.standing if slot is not None else NOT_RUNNING

    def history(self, key: ServerKey) -> KeyHistory:
        """The key's last moves and measurements; empty when the pool knows no such key."""
        slot = self._slots.get(key)
        return slot.history if slot is not None else KeyHistory()

    async def restart(self, key: ServerKey, reason: str) -> bool:
        """Ends the key's runs, closes its breaker, and waits for a fresh start. False when the pool knows no such key.

        Raises:
            ServerUnavailable, ServerNotInstalled, ServerStartFailed
        """
        slot = self._slots.get(key)
        if slot is not None:
            await slot.restart(reason)
        return slot is not None

    async def stop(self, key: ServerKey, reason: str, *, cause: Cause = Cause.PERSON) -> bool:
        """Ends the key's runs until somebody leases again. With Cause.SETTINGS_CHANGED running calls may end first.

        Returns once the process trees are gone (bounded). False when the pool knows no such key.
        """
        slot = self._slots.get(key)
        if slot is not None:
            await slot.stop(cause, reason)
        return slot is not None

    def replace(self, key: ServerKey, reason: str) -> None:
        """Begins the end of the key's runs, for another key takes their place; running calls may end first."""
        slot = self._slots.get(key)
        if slot is not None:
            slot.expire(Cause.SETTINGS_CHANGED, reason)

    def given_up(self, roots: Collection[Path]) -> dict[str, str]:
        """Servers of these roots that are not started any more → why."""
        return {
            slot.key.server: slot.breaker.refusal_now or ""
            for slot in self._slots.values()
            if slot.key.root in roots and slot.breaker.state is BreakerState.GIVEN_UP
        }

    def may_start(self, root: Path, reason: str, *, server: str | None = None) -> None:
        """Lets servers of a root (all, or one) that were given up start again: the cause may be fixed."""
        for slot in self._slots.values():
            ours = slot.key.root == root and server in (None, slot.key.server)
            if ours and slot.breaker.state is BreakerState.GIVEN_UP:
                slot.breaker.close(reason)

    def close_breaker(self, key: ServerKey, reason: str) -> bool:
        """Lets the key start again at once. False when the pool knows no such key."""
        slot = self._slots.get(key)
        if slot is not None:
            slot.breaker.close(reason)
        return slot is not None

    def share_budget(self, others: Callable[[], list[OtherProcess]]) -> None:
        """`others` returns the processes that count into the memory budget beside the language servers. They are
        stopped in the same order, and ended by the next server if they outlive this one."""
        self._reaper.others = others

    def share_node(self, node: NodeMemory) -> None:
        """Has other processes of this machine count into the memory budget, and this one into theirs."""
        self._reaper.node = node

    def count_caches(self, caches: Callable[[], list[CachedMemory]]) -> None:
        """`caches` returns what this process keeps in memory that counts into the budget, too. It is dropped in the
        same order as language servers are stopped: what was idle longest first."""
        self._reaper.caches = caches

    def caches(self) -> list[CachedMemory]:
        return self._reaper.caches()

    def memory_of(self, pid: int) -> int:
        """What one of those took when it was measured last, with all below it, in bytes."""
        return self._reaper.memory_of(pid)

    def measure_soon(self) -> None:
        """Measures what runs in a task of the pool's own; another process has started."""
        self._spawn(self._reaper.measure)

    @property
    def mark(self) -> Mapping[str, str]:
        """The variable that must be in the environment of each process that the pool may find again and end."""
        return {OWNER_VARIABLE: self._ledger.owner}

    async def sweep(self) -> None:
        """One pass of the reaper, which otherwise comes every policy.idle_check_s."""
        await self._reaper.sweep()

    async def _look_at_silence(self) -> None:
        def look() -> None:
            for slot in self._slots.values():
                slot.look_at_silence()

        def every_s() -> float:
            waiting = any(run.silence.keeps_waiting for slot in self._slots.values() for run in slot.runs)
            return LOOKED_AT_S if waiting else LOOKED_AT_S * IDLE_FACTOR

        await repeat("looking at silent servers", look, every_s=every_s)

    def _slot(self, wanted: WantedServer) -> Slot:
        slot = self._slots.get(wanted.key)
        if slot is None:
            slot = self._slots[wanted.key] = Slot(
                wanted,
                self.policy,
                bus=self._bus,
                clock=self._clock,
                admit=self._admit,
                launch=self._launch,
                spawn=self._spawn,
            )
        slot.wanted = wanted  # the next run reads as who asked last: the first one's project may be closed by now
        return slot

    def _warn(self, message: str) -> None:
        self._bus.publish(ServerMemory(message=message, severity=Severity.WARNING))

    def _admit(self, wanted: WantedServer) -> str | None:
        if not self._open:
            return "the pool of language servers is not running"
        return self._reaper.admit(wanted.spec.memory_mb << 20)

    def _launch(self, run: Run, delay_s: float) -> None:
        async def serve() -> None:
            await run.serve(self._build, delay_s)

        async def measure() -> None:
            await run.settled.wait()
            await self._reaper.measure()

        self._spawn(serve)
        self._spawn(measure)

    def _spawn(self, work: Work) -> None:
        """Runs it in a task of the pool's own; when the pool has ended there is nothing left to do."""
        if self._orders is not None:
            self._orders.send_nowait(work)

    async def _build(self, wanted: WantedServer) -> LanguageServer:
        spec, untrusted = wanted.spec, wanted.untrusted
        memory_mb = self.server_memory_mb
        find = partial(self._locate, spec, wanted.root, self._places, untrusted=untrusted, memory_mb=memory_mb)
        launch = await anyio.to_thread.run_sync(find)
        env = {**launch.env, **wanted.env, **self.mark}
        return LanguageServer(
            wanted.spec,
            wanted.root,
            folder=wanted.folder,
            launch=msgspec.structs.replace(launch, env=env),
            settings=wanted.settings,
            read_text=wanted.read_text,
            are_at_hand=wanted.are_at_hand,
            temporary=self._places.temporary,
            on_watching=self._watching,
        )

    async def _own_work(self, *, task_status: TaskStatus[None]) -> None:
        """Starts, servers and probes run in this group: out of reach of their askers' cancellation and context.

        The pool's own cancellation reaches them after the stop ladders had their time: see `_close`.
        """
        self._orders, orders = anyio.create_memory_object_stream[Work](math.inf)
        with self._shield:
            async with anyio.create_task_group() as tasks, orders:
                task_status.started()
                async for work in orders:
                    tasks.start_soon(contained, "a task of the pool", work)
            self._ledger.record([])

    def _close(self) -> None:
        self._open = False
        for slot in self._slots.values():
            slot.expire(Cause.SHUTDOWN, "the pool ends")
        self._shield.deadline = anyio.current_time() + self.policy.shutdown_timeout_s
        if self._orders is not None:
            self._orders.close()
            self._orders = None


def _forbidden(spec: ServerSpec, changes: Iterable[FileEvent]) -> Path | None:
    """A file that has come or changed, with which a server can't be kept from executing (`lsp/restriction`)."""
    names = spec.untrusted.unless if spec.untrusted else ()
    return next((change.path for change in changes if change.path.name in names and change.kind != "deleted"), None)
