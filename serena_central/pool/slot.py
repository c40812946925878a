"""The slot of one server key: its current run, the successor that starts beside it, those that drain, its breaker.

Decides when a run starts and which one gives leases, and publishes every state change of its runs. It does not know
other keys: it asks the pool whether a start is allowed.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypedDict

import anyio

from serena_central.config.policies import PoolPolicy
from serena_central.core import progress
from serena_central.core.errors import (
    DeadlineExceeded,
    ServerCrashed,
    ServerNotInstalled,
    ServerSilent,
    ServerUnavailable,
)
from serena_central.core.event_kinds import ServerBreaker, ServerMoved, ServerPattern, ServerReplacementPostponed
from serena_central.core.events import EventBus, Severity
from serena_central.pool.breaker import REFUSING, BreakerState, CircuitBreaker
from serena_central.pool.key import WantedServer
from serena_central.pool.key_history import KeyHistory
from serena_central.pool.run import Run
from serena_central.pool.state import Cause, Move, RunState

_OF_EVERY_CALL = frozenset({Cause.LEASE_TAKEN, Cause.LEASE_RETURNED})
_FAILURES = frozenset({Cause.START_FAILED, Cause.START_DEADLINE, Cause.CRASH, Cause.HANG, Cause.OUT_OF_MEMORY})

NOT_RUNNING = "is not running; it is started in the background"

Spawn = Callable[[Callable[[], Awaitable[None]]], None]
"""Runs a coroutine function in a task of the pool's own."""


class _About(TypedDict):
    """The fields that all events of a key share."""

    server: str
    project: str
    root: str


class Slot:
    """One key's runs. Belongs to the event loop's thread; only `acquire`, `stop` and `restart` wait."""

    def __init__(
        self,
        wanted: WantedServer,
        policy: PoolPolicy,
        *,
        bus: EventBus,
        clock: Callable[[], float],
        admit: Callable[[WantedServer], str | None],
        launch: Callable[[Run, float], None],
        spawn: Spawn,
    ) -> None:
        """`admit` says why no further process may start now, or None; `launch` serves a run after a delay in s."""
        self.wanted = wanted
        self.key = wanted.key
        self.made_at = clock()
        self.current: Run | None = None  # connecting, idle or in use
        self.successor: Run | None = None  # connecting, to take current's place
        self.runs: list[Run] = []  # all whose process tree may exist: the two above, and those that drain
        self.last: Run | None = None  # the one that ended last
        self.starts = 0
        self.missed = 0
        """Starts for which there was no program."""
        self.history = KeyHistory()
        self.breaker = CircuitBreaker(policy, clock=clock, on_change=self._breaker_changed)
        self._policy = policy
        self._bus = bus
        self._clock = clock
        self._admit = admit
        self._launch = launch
        self._spawn = spawn
        self._refused: str | None = None
        """Why the last start was not admitted."""

    @property
    def now(self) -> float:
        """By the clock of its runs."""
        return self._clock()

    @property
    def standing(self) -> str:
        """How it stands with the server now, for people: a clause without its subject and its end."""
        run = self.usable_run()
        if run is not None:
            said = "is asked" if run.server.proven else "has started but not answered yet; it is asked"
            return f"{said} in the background"
        failure = self.last.failure if self.last is not None and self.breaker.failures else None
        if self.current is not None:
            again = f" again. The last time it failed: {failure}" if failure is not None else ""
            return f"is starting{again or '; it is asked in the background'}"
        refusal = self.breaker.refusal_now or self._refused
        if refusal is not None:
            return f"is not available: {refusal}"
        if failure is not None:
            return f"failed to start and is retried in the background: {failure}"
        return NOT_RUNNING

    def usable_run(self) -> Run | None:
        """The run that gives leases now, if there is one."""
        run = self.current
        return run if run is not None and run.usable() else None

    async def acquire(self) -> Run | None:
        """Takes a lease on the current run, and starts one if there is none; concurrent callers share one start. None
        when that was ended for other settings, under which the caller may want another key.

        Raises:
            ServerUnavailable, ServerNotInstalled, ServerStartFailed
        """
        run = await self._started(Cause.LEASE_ASKED)
        if run is not None:
            self.take(run)
        return run

    async def _started(self, cause: Cause, detail: str = "") -> Run | None:
        """The current run once it is usable, or one that begins for this cause. A start that is restarted is waited for
        in its next attempt; None when it was ended for other settings."""
        while (run := self.usable_run()) is None:
            run = self.current
            if run is None and self.wanted.spec.exclusive and self.runs:
                await self.runs[0].ended.wait()  # two at a time would spoil each other's data
                continue
            if run is None:
                run = self.start(cause, detail)
            elif self.breaker.state is BreakerState.HALF_OPEN:
                raise self._unavailable("it failed before, and one restart is being attempted; call again in a moment")
            progress.report(f"Starting {self.key.server} for {self.key.root}")
            with progress.waiting_for(self._starting):
                try:
                    await run.settled.wait()
                except anyio.get_cancelled_exc_class():
                    progress.note_unanswered(self._starting()[0])
                    raise
            if run.failure is not None and not run.is_restarted:
                if run.life.facts.cause is Cause.SETTINGS_CHANGED:
                    return None
                raise run.failure.again()
        return run

    def _starting(self) -> tuple[str, float | None]:
        return f"the language server {self.key.server} is starting", None

    def take(self, run: Run) -> None:
        run.life.take()
        if run.life.facts.calls == self._policy.max_calls:
            self.replace_worn_out()

    def give_back(self, run: Run, error: BaseException | None) -> None:
        """Returns a lease; what the call met tells how the server fares."""
        if run.server.trouble and not run.trouble_reported:
            run.trouble_reported = True
            self._bus.publish(ServerPattern(message=run.server.trouble, severity=Severity.WARNING, **self._about()))
        if error is None:
            run.unanswered = 0
            # A lease that asked nothing, or came back from a run that has crashed meanwhile, is no success.
            if self.breaker.failures and run.life.usable and run.server.proven:
                self.breaker.close()
        elif isinstance(error, ServerCrashed):
            run.usable()  # a death is noticed before anybody asks again
        elif isinstance(error, (anyio.get_cancelled_exc_class(), TimeoutError, DeadlineExceeded, ServerSilent)):
            run.unanswered += 1
            if run.unanswered % self._policy.hang_calls == 0 and run.usable():
                self._spawn(lambda: self._doubt(run))
        run.give_back()

    def start(self, cause: Cause, detail: str = "") -> Run:
        """Begins a new current run, without waiting. No await between the caller's look at `current` and here.

        Raises:
            ServerUnavailable
        """
        self.current = run = self._begin(cause, detail)
        return run

    def replace_worn_out(self) -> None:
        """Starts a successor beside a run that has given max_calls leases; if that can't be now, at a later sweep."""
        run = self.current
        if run is None or self.successor is not None or run.life.facts.calls < self._policy.max_calls:
            return
        if self.wanted.spec.exclusive:
            run.expire(Cause.MAX_CALLS, f"it has served {run.life.facts.calls} leases, and no second process may run")
            return
        try:
            fresh = self._begin(Cause.MAX_CALLS, f"run {run.number} has served {run.life.facts.calls} leases")
        except ServerUnavailable as refusal:
            self._bus.publish(
                ServerReplacementPostponed(message=str(refusal), severity=Severity.WARNING, **self._about())
            )
            return
        if self.current is None:  # an idle one may just have made room
            self.current = fresh
        else:
            self.successor = fresh

    async def stop(self, cause: Cause, detail: str) -> None:
        """Ends all runs, and waits (bounded) for their process trees to be gone."""
        ending = self.expire(cause, detail)
        with anyio.move_on_after(self._policy.stop_timeout_s):
            for run in ending:
                await run.ended.wait()

    async def restart(self, reason: str) -> None:
        """Raises: ServerUnavailable, ServerNotInstalled, ServerStartFailed."""
        self.breaker.close(f"restarted manually: {reason}")
        for run in self.runs:
            run.is_restarted = True
        await self.stop(Cause.PERSON, reason)
        await self._started(Cause.PERSON, reason)

    def expire(self, cause: Cause, detail: str) -> list[Run]:
        """Begins the end of all runs."""
        ending = list(self.runs)
        for run in ending:
            run.expire(cause, detail)
        return ending

    def _begin(self, cause: Cause, detail: str) -> Run:
        problem = self.breaker.refusal()
        if problem is None:
            problem = self._refused = self._admit(self.wanted)
        if problem is not None:
            raise self._unavailable(problem)
        self.starts += 1
        run = Run(self.starts, self.wanted, self._policy, clock=self._clock, on_move=self._moved)
        self.runs.append(run)
        run.life.connect(cause, detail)
        self._launch(run, self.breaker.restart_delay_s)
        return run

    def look_at_silence(self) -> None:
        """Tells who waits for silent servers, and has those doubted."""
        for run in self.runs:
            if run.usable() and run.silence.look(self._policy.silence_s):
                self._spawn(partial(self._doubt_silent, run))

    async def _doubt_silent(self, run: Run) -> None:
        """Replaces a run that does nothing while calls wait for it: they are repeated on the next one."""
        heard_at = run.server.heard_at
        hangs = await run.how_it_hangs() or await run.how_it_stalls(heard_at)
        if hangs and run.usable():
            run.expire(Cause.HANG, f"it left calls waiting, {hangs}")

    async def _doubt(self, run: Run) -> None:
        """Replaces a run that does not even answer a ping: nobody may wait for it at the moment."""
        hangs = await run.how_it_hangs()
        if hangs and run.unanswered >= self._policy.hang_calls:
            run.expire(Cause.HANG, f"it left {run.unanswered} calls in a row without an answer, {hangs}")

    def _moved(self, run: Run, move: Move) -> None:
        self._publish_move(run, move)
        if move.cause not in _OF_EVERY_CALL:
            self.history.moved(run.number, move)
        if move.cause in _FAILURES and not isinstance(run.failure, ServerNotInstalled):
            at_start = move.cause in (Cause.START_FAILED, Cause.START_DEADLINE)
            self.breaker.failure(f"{move.cause}: {move.detail}", at_start=at_start)
        if isinstance(run.failure, ServerNotInstalled) and move.to is RunState.DISCONNECTED:
            self.missed += 1
        if move.to is RunState.IDLE and run is self.successor:
            worn_out, self.current, self.successor = self.current, run, None
            if worn_out is not None:
                worn_out.expire(Cause.MAX_CALLS, f"run {run.number} takes over")
        elif move.to in (RunState.EXPIRED, RunState.DISCONNECTED):
            self._leave(run, move.to)

    def _leave(self, run: Run, to: RunState) -> None:
        """A run gives no more leases, or is gone altogether."""
        if to is RunState.DISCONNECTED:
            self.runs.remove(run)
            self.last = run
        if run is self.successor:
            self.successor = None
        elif run is self.current:
            self.current, self.successor = self.successor, None

    def _breaker_changed(self, state: BreakerState, why: str) -> None:
        severity = Severity.WARNING if state in REFUSING else Severity.INFO
        words = f"circuit breaker {state}: {why}"
        self._bus.publish(
            ServerBreaker(message=words, severity=severity, state=str(state), reason=why, **self._about())
        )

    def _publish_move(self, run: Run, move: Move) -> None:
        reason = f"{move.cause}: {move.detail}" if move.detail else str(move.cause)
        self._bus.publish(
            ServerMoved(
                message=f"{move.source} → {move.to} ({reason})",
                severity=Severity.WARNING if move.cause in _FAILURES and not self._is_old_news(run) else Severity.INFO,
                keep=move.cause not in _OF_EVERY_CALL,
                source=move.source.value,
                to=move.to.value,
                cause=move.cause.value,
                reason=reason,
                pid=move.pid,
                run=run.number,
                **self._about(),
            )
        )

    def _is_old_news(self, run: Run) -> bool:
        """Whether a run's start failed as the one before it did: a warning is given once."""
        before = self.last.failure if self.last is not None else None
        return before is not None and run.failure is not None and str(run.failure) == str(before)

    def _about(self) -> _About:
        root = str(self.key.root)
        return {"server": self.key.server, "project": root, "root": root}

    def _unavailable(self, why: str) -> ServerUnavailable:
        return ServerUnavailable(self.key.server, f"{self.key.server} for {self.key.root} is not available: {why}.")
