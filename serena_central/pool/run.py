"""A run: the process tree of one language server, from its start until it is reaped.

Owns the server object and carries out what its lifecycle says: starts it within the deadline, stops it when it expires
and its last call has ended, notices its end. Knows no key, no other run and no policy but its own bounds.

Calls that wait while the server sends nothing are sent progress on what they wait for. A server that stays silent is
doubted: who does that asks the run (`Run.how_it_hangs`). Once a call was given up, further ones wait a short time only
until the server has said something again.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.config.policies import PoolPolicy
from serena_central.core import progress
from serena_central.core.errors import (
    STDERR_SHOWN,
    LanguageServerError,
    ServerCrashed,
    ServerSilent,
    ServerStartFailed,
    ServerUnavailable,
)
from serena_central.core.quoting import quoted
from serena_central.core.running_time import running_time
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.client import LanguageServer
from serena_central.pool.key import WantedServer
from serena_central.pool.state import Cause, Lifecycle, Move, RunState
from serena_central.processes.usage import ProcessUsage, Usage

logger = logging.getLogger(__name__)

PROGRESS_S = 5.0
"""Interval at which a call is sent progress, in seconds."""

FURTHER_S = 10.0
"""How long a call waits for a server that left another without an answer and has sent nothing since."""

BACKGROUND = "background work: the index, an analysis run or a warm-up"
"""Holds the leases that no call holds."""

ServerBuilder = Callable[[WantedServer], Awaitable[LanguageServer]]
"""Makes the server object, unstarted. Raises: ServerNotInstalled."""

LEAST_MEASURED_S = 0.5
"""CPU time is counted in hundredths of a second: shares of a shorter span are noise."""

IDLE_SHARE = 0.01
"""Of one core, that also a server takes that does nothing."""

RESTING_AFTER_S = 30.0
"""Unused for so long, a server may be at rest."""

STALLED_LOOKS = 5
"""So often in a row calls must have waited for `silence_s` on a server that answers pings and does nothing else."""

_DRAINS = frozenset({Cause.MAX_CALLS, Cause.SETTINGS_CHANGED})
"""Causes after which the calls that still run may end; after all others the process is stopped at once."""


class Holder(msgspec.Struct, frozen=True):
    """A lease that is held now."""

    label: str
    held_s: float


class Run:
    """A process tree that can be leased. Belongs to the event loop's thread."""

    def __init__(
        self,
        number: int,
        wanted: WantedServer,
        policy: PoolPolicy,
        *,
        clock: Callable[[], float],
        on_move: Callable[["Run", Move], None],
    ) -> None:
        self.number = number
        self.wanted = wanted
        self.life = Lifecycle(clock=clock, on_move=lambda move: on_move(self, move))
        self.settled = anyio.Event()  # set when the start has succeeded or failed
        self.ended = anyio.Event()  # set when the process tree is gone
        self.failure: LanguageServerError | None = None  # why the start failed
        self.is_restarted = False  # it is ended for the next run, which those who wait for its start wait for then
        self.unanswered = 0  # calls in a row that were given up before an answer came
        self.memory_bytes = 0  # as last measured by the reaper
        self.processes: tuple[ProcessUsage, ...] = ()  # the same
        self.holders: dict[object, tuple[str, float]] = {}
        """Lease → who holds it, and since when by the clock."""
        self.cpu_percent = 0.0  # of one core, between its last two measurements
        self.checked_at = clock()  # the last proof of health
        self.started_at = clock()
        self._policy = policy
        self._clock = clock
        self._server: LanguageServer | None = None
        self.trouble_reported = False
        """Whether it was published that a pattern of its entry is not used any more."""
        self._start_scope = anyio.CancelScope()
        self.silence = Silence(wanted.spec.name, lambda: self.server.heard_at)
        self._cpu_s = 0.0
        self._cpu_at = self.started_at
        self._is_doubted = False
        self._doubted_at = -math.inf
        """When it was first found to answer no ping since its last answer, in `running_time`."""
        self._stall: _Stall | None = None
        self._abandoned: tuple[Cause, str] | None = None

    @property
    def server(self) -> LanguageServer:
        """The running server; asked for only between handshake and end."""
        assert self._server is not None
        return self._server

    @property
    def version(self) -> str:
        return self._server.server_version if self._server and self.life.facts.pid else ""

    @property
    def stderr_tail(self) -> str:
        return self._server.stderr_tail if self._server else ""

    @property
    def expected_memory_bytes(self) -> int:
        """Measured, or the catalogue's hint as long as nothing was measured."""
        return self.memory_bytes or self.wanted.spec.memory_mb * 1024 * 1024

    def measured(self, usage: Usage) -> None:
        """Takes what the reaper has measured."""
        self.memory_bytes, self.processes = usage.memory_bytes, usage.processes
        now = self._clock()
        if now - self._cpu_at >= LEAST_MEASURED_S:
            self.cpu_percent = 100 * max(0.0, usage.cpu_s - self._cpu_s) / (now - self._cpu_at)
            self._cpu_s, self._cpu_at = usage.cpu_s, now

    @property
    def is_resting(self) -> bool:
        """True for a server that has been unused for long, and did nothing by itself when it was measured last."""
        facts = self.life.facts
        unused = facts.state is RunState.IDLE and self._clock() - facts.moved_at >= RESTING_AFTER_S
        return unused and self.cpu_percent <= 100 * IDLE_SHARE

    def usable(self) -> bool:
        """True while leases may be taken. A process whose death was not yet noticed by its owner expires here."""
        if not self.life.usable:
            return False
        if self.server.alive:
            return True
        self.expire(Cause.CRASH, self._epitaph())
        return False

    def give_back(self) -> None:
        self.life.give_back()
        facts = self.life.facts
        if facts.state is RunState.EXPIRED and not facts.leases:
            self.stop()

    def expire(self, cause: Cause, detail: str) -> None:
        """Ends the use of this run. Safe at any time: one that drains is stopped where `cause` is in a hurry."""
        if self.life.state is RunState.CONNECTING:
            self._abandoned = self._abandoned or (cause, detail)
            self._start_scope.cancel()
            return
        if self.life.usable:
            self.life.expire(cause, detail)
        facts = self.life.facts
        if facts.state is RunState.EXPIRED and (cause not in _DRAINS or not facts.leases):
            self.stop()

    def stop(self) -> None:
        """Begins the stop ladder. A server that is ending by itself is left to tell its callers how."""
        if self.server.alive:
            self.server.stop()

    def files_changed(self, changes: Sequence[FileEvent]) -> None:
        """Before the server object exists nothing was read from disk, so that there is nothing to notify."""
        if self._server is not None:
            self._server.files_changed(changes)

    @property
    def watched_folders(self) -> frozenset[Path]:
        """Folders that the server has asked to hear of."""
        return self._server.watched_folders if self._server is not None else frozenset()

    @property
    def open_documents(self) -> int:
        """How many files it holds open for us, with what it knows of each."""
        return self._server.open_documents if self._server is not None else 0

    @property
    def created_ns(self) -> int | None:
        """When its server object was made, by the clock that files are stamped with; None before."""
        return self._server.created_ns if self._server is not None else None

    async def answers(self) -> bool:
        """False when the server keeps silent. One that has crashed is no matter of health, and is noticed elsewhere."""
        with running_time.move_on_after(self._policy.health_timeout_s):
            try:
                await self.server.ping()
            except LanguageServerError as error:
                logger.info("Ping of %s failed: %s", self.wanted.spec.name, error)
            self.unanswered = 0
            self.checked_at = self._clock()
            return True
        return False

    async def how_it_hangs(self) -> str:
        """Empty for a server that answers, and for one that works or has another program work: that is only slow, as
        long as it answers within `unresponsive_s`. Empty, too, while somebody finds that out already."""
        if self._is_doubted:
            return ""
        self._is_doubted = True
        try:
            return await self._look_how_it_hangs()
        finally:
            self._is_doubted = False

    async def _look_how_it_hangs(self) -> str:
        began, used_s = running_time(), await self._cpu_used_s()
        if await self.answers():
            return ""
        if self._doubted_at <= self.server.answered_at:
            self._doubted_at = began
        now, used_s = running_time(), await self._cpu_used_s() - used_s
        if self.server.answered_at > began:
            return ""
        # Less than before: a program has ended whose time nobody was told.
        if 0 <= used_s <= IDLE_SHARE * (now - began):
            return "answered no ping and used no CPU time"
        self.checked_at = self._clock()
        silent_s = now - self._doubted_at
        return f"answered no ping for {silent_s:.0f} s" if silent_s >= self._policy.unresponsive_s else ""

    async def how_it_stalls(self, heard_at: float) -> str:
        """Why a server counts as hung that answers pings: one thread reads and answers them, and those that all other
        work is done in wait for each other. To be asked each time that calls have waited in vain and a ping was
        answered; `heard_at`: when the server had sent something last before that ping."""
        now, used_s = running_time(), await self._cpu_used_s()
        last, pinged_at = self._stall, self.server.heard_at
        if self.server.is_loading or last is None or heard_at != last.pinged_at or not last.is_idle(now, used_s):
            self._stall = _Stall(now, used_s, pinged_at)
            return ""
        self._stall = last._replace(pinged_at=pinged_at, looks=last.looks + 1)
        if self._stall.looks < STALLED_LOOKS:
            return ""
        return f"for {now - last.began:.0f} s it answered pings alone and used no CPU time"

    async def _cpu_used_s(self) -> float:
        return (await anyio.to_thread.run_sync(self.server.usage)).cpu_s

    async def serve(self, build: ServerBuilder, delay_s: float) -> None:
        """The whole life of the process, after an initial delay; its lifecycle is connecting already. Never raises."""
        try:
            async with anyio.create_task_group() as tasks:
                await self._start(tasks, build, delay_s)
        except Exception:
            logger.exception("The client of %s failed", self.wanted.spec.name)
        finally:
            self._end()

    async def _start(self, tasks: TaskGroup, build: ServerBuilder, delay_s: float) -> None:
        """Leads out of connecting. A start that is cut short has been reaped by `tasks.start` when that returns."""
        name = self.wanted.spec.name
        pid: int | None = None
        try:
            with self._start_scope, running_time.counting(self._start_scope):
                await anyio.sleep(delay_s)
                self._start_scope.deadline = anyio.current_time() + self._policy.start_timeout_s
                server = self._server = await build(self.wanted)
                await tasks.start(_serve, server)
                pid = await anyio.to_thread.run_sync(lambda: server.pid)  # reads /proc for some milliseconds
        except LanguageServerError as error:
            self._fail(Cause.START_FAILED, error)
        except Exception as error:
            logger.exception("The start of %s failed", name)
            self._fail(Cause.START_FAILED, ServerStartFailed(name, f"The start of {name} failed: {error}"))
        else:
            self._settle(pid)
        if self.failure is not None:
            tasks.cancel_scope.cancel()  # the handshake may have ended in the same moment

    def _settle(self, pid: int | None) -> None:
        name = self.wanted.spec.name
        if self._abandoned is not None:
            cause, detail = self._abandoned
            self._fail(cause, ServerUnavailable(name, f"The start of {name} was stopped ({cause}): {detail}"))
        elif self._start_scope.cancelled_caught:
            limit_s = self._policy.start_timeout_s
            tail = f" Last lines of its stderr: {quoted(self.stderr_tail, STDERR_SHOWN)}" if self.stderr_tail else ""
            words = f"{name} did not finish its handshake within {limit_s:g} s.{tail}"
            self._fail(Cause.START_DEADLINE, ServerStartFailed(name, words))
        elif pid is None:
            self._fail(
                Cause.START_FAILED, ServerCrashed(name, self.server.exit_code, self.stderr_tail, self.server.broken)
            )
        else:
            self.checked_at = self._clock()
            self.life.initialized(pid)
            self.settled.set()

    def _fail(self, cause: Cause, error: LanguageServerError) -> None:
        self.failure = error
        self.life.fail(cause, str(error))
        self.settled.set()

    def _end(self) -> None:
        """The process tree is gone, however that came."""
        if self.life.state is RunState.CONNECTING:
            self._fail(Cause.SHUTDOWN, ServerUnavailable(self.wanted.spec.name, "The server is shutting down."))
        if self.life.usable:
            self.expire(Cause.CRASH, self._epitaph())
        if self.life.state is RunState.EXPIRED:
            self.life.reaped()
        self.ended.set()

    def _epitaph(self) -> str:
        if self.server.broken:
            return f"it sent {quoted(self.server.broken)}"
        code = self.server.exit_code
        return "the process ended" if code is None else f"exit code {code}"


class _Stall(NamedTuple):
    """Looks in a row at which a server had answered nothing but the ping of the look before: when that `began`, the CPU
    time that it had used by then, and when the last ping was answered."""

    began: float
    used_s: float
    pinged_at: float
    looks: int = 1

    def is_idle(self, now: float, used_s: float) -> bool:
        return 0 <= used_s - self.used_s <= IDLE_SHARE * (now - self.began)


async def _serve(server: LanguageServer, *, task_status: TaskStatus[None]) -> None:
    await server.run(task_status=task_status)


class _Wait:
    __slots__ = ("began", "listener", "reported_at", "scope")

    def __init__(self, began: float, listener: progress.Listener | None, scope: anyio.CancelScope) -> None:
        self.began = self.reported_at = began
        self.listener = listener
        self.scope = scope


class Silence:
    """Of one run. Belongs to the event loop's thread; times are `running_time`'s."""

    def __init__(self, server: str, heard_at: Callable[[], float]) -> None:
        """`heard_at` tells when the server sent its last message."""
        self._server = server
        self._heard_at = heard_at
        self._waits: set[_Wait] = set()
        self._given_up_at = -math.inf
        self._doubted_at = -math.inf

    @property
    def keeps_waiting(self) -> bool:
        """Whether any call waits now."""
        return bool(self._waits)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Around one operation that needs answers.

        Raises:
            ServerSilent
        """
        began = running_time()
        with anyio.CancelScope() as scope, running_time.counting(scope):
            wait = _Wait(began, progress.listener(), scope)
            if self._given_up_at > self._heard_at():
                scope.deadline = anyio.current_time() + FURTHER_S
            self._waits.add(wait)
            try:
                yield
            except anyio.get_cancelled_exc_class():
                self._gave_up(wait)
                raise
            finally:
                self._waits.discard(wait)
        if scope.cancelled_caught:
            raise ServerSilent(self._server, running_time() - self._heard_at())

    def look(self, doubted_after_s: float) -> bool:
        """Sends progress to the waiting calls; returns whether the server should be pinged now: once per silence."""
        now, heard_at = running_time(), self._heard_at()
        longest_s = 0.0
        for wait in self._waits:
            silent_s = now - max(wait.began, heard_at)
            longest_s = max(longest_s, silent_s)
            if heard_at > self._given_up_at:
                wait.scope.deadline = math.inf
            if now - wait.reported_at >= PROGRESS_S:
                wait.reported_at = now
                if wait.listener is not None:
                    state = f"which has sent nothing for {silent_s:.0f} s" if silent_s >= PROGRESS_S else "which works"
                    wait.listener(f"Waiting for the language server {self._server}, {state}", None)
        if longest_s < doubted_after_s or now - self._doubted_at < doubted_after_s:
            return False
        self._doubted_at = now
        return True

    def _gave_up(self, wait: _Wait) -> None:
        now, heard_at = running_time(), self._heard_at()
        waited_s, silent_s = now - wait.began, now - max(wait.began, heard_at)
        if silent_s > waited_s / 2:
            progress.note_unanswered(f"the language server {self._server} has not answered for {silent_s:.0f} s")
            if silent_s >= PROGRESS_S:
                self._given_up_at = now
        else:
            progress.note_unanswered(f"the language server {self._server} is still working")
