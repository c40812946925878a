"""The life of one run, as a state machine: its states, the only legal moves, and the facts that go with them.

    disconnected → connecting → idle ⇄ in_use → expired → disconnected
                     ↓ failed     └──────────────↑
                   disconnected

It knows no process: callers pass the reason of each move, and a callback is notified of every move.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import msgspec


class RunState(StrEnum):
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    IDLE = "idle"
    IN_USE = "in_use"
    EXPIRED = "expired"


class Cause(StrEnum):
    """Why a run moved. The words are shown to people."""

    LEASE_ASKED = "lease asked"
    INITIALIZED = "initialized"
    START_FAILED = "start failed"
    START_DEADLINE = "start deadline passed"
    LEASE_TAKEN = "lease taken"
    LEASE_RETURNED = "lease returned"
    IDLE_TIMEOUT = "idle timeout"
    MEMORY_BUDGET = "memory budget"
    OUT_OF_MEMORY = "out of memory"
    MAX_CALLS = "max calls"
    CRASH = "crash"
    HANG = "hang"
    PERSON = "person"
    SETTINGS_CHANGED = "settings changed"
    NOT_TRUSTED = "not trusted"
    SHUTDOWN = "shutdown"
    TREE_GONE = "process tree gone"


_ENDS_ANY_USE = frozenset(
    {
        Cause.MAX_CALLS,
        Cause.CRASH,
        Cause.HANG,
        Cause.OUT_OF_MEMORY,
        Cause.PERSON,
        Cause.SETTINGS_CHANGED,
        Cause.NOT_TRUSTED,
        Cause.SHUTDOWN,
    }
)

LEGAL: dict[tuple[RunState, RunState], frozenset[Cause]] = {
    (RunState.DISCONNECTED, RunState.CONNECTING): frozenset({Cause.LEASE_ASKED, Cause.MAX_CALLS, Cause.PERSON}),
    (RunState.CONNECTING, RunState.IDLE): frozenset({Cause.INITIALIZED}),
    (RunState.CONNECTING, RunState.DISCONNECTED): frozenset(
        {
            Cause.START_FAILED,
            Cause.START_DEADLINE,
            Cause.OUT_OF_MEMORY,
            Cause.PERSON,
            Cause.SETTINGS_CHANGED,
            Cause.NOT_TRUSTED,
            Cause.SHUTDOWN,
        }
    ),
    (RunState.IDLE, RunState.IN_USE): frozenset({Cause.LEASE_TAKEN}),
    (RunState.IN_USE, RunState.IN_USE): frozenset({Cause.LEASE_TAKEN, Cause.LEASE_RETURNED}),
    (RunState.IN_USE, RunState.IDLE): frozenset({Cause.LEASE_RETURNED}),
    (RunState.IDLE, RunState.EXPIRED): _ENDS_ANY_USE | {Cause.IDLE_TIMEOUT, Cause.MEMORY_BUDGET},
    (RunState.IN_USE, RunState.EXPIRED): _ENDS_ANY_USE,
    (RunState.EXPIRED, RunState.EXPIRED): frozenset({Cause.LEASE_RETURNED}),
    (RunState.EXPIRED, RunState.DISCONNECTED): frozenset({Cause.TREE_GONE}),
}
"""Every legal step and what may cause it. A step within a state changes the number of leases, and is no move."""

_HAS_PROCESS = frozenset({RunState.IDLE, RunState.IN_USE, RunState.EXPIRED})


class Facts(msgspec.Struct, frozen=True):
    """All that is true of a run at one moment. `moved_at` is in seconds of the owner's clock."""

    state: RunState = RunState.DISCONNECTED
    cause: Cause | None = None  # of the last move
    detail: str = ""  # of the last move, for people
    moved_at: float = 0.0
    leases: int = 0  # held now; what an expired run still has to finish
    calls: int = 0  # leases given in all
    pid: int | None = None  # known exactly while a handshaken process tree may exist

    def contradiction(self) -> str | None:
        """What can't be true of these facts, or None."""
        if (self.state is RunState.IN_USE) != (self.leases > 0) and self.state is not RunState.EXPIRED:
            return f"{self.state} with {self.leases} leases"
        if not 0 <= self.leases <= self.calls:
            return f"{self.leases} leases of {self.calls} calls"
        if (self.pid is not None) != (self.state in _HAS_PROCESS):
            return f"{self.state} with pid {self.pid}"
        return None


class Move(NamedTuple):
    """One change of state. `pid` is the process that it is about, also when that is gone by now."""

    source: RunState
    to: RunState
    cause: Cause
    detail: str
    pid: int | None


class IllegalMove(RuntimeError):
    """A move that the table does not allow: a bug in the caller. Nothing was changed."""


class Lifecycle:
    """One run's facts, and the only way to change them. `on_move` is called after each change of state."""

    def __init__(self, *, clock: Callable[[], float], on_move: Callable[[Move], None]) -> None:
        self._clock = clock
        self._on_move = on_move
        self.facts = Facts(moved_at=clock())

    @property
    def state(self) -> RunState:
        return self.facts.state

    @property
    def usable(self) -> bool:
        """True while leases may be taken."""
        return self.facts.state is RunState.IDLE or self.facts.state is RunState.IN_USE

    def connect(self, cause: Cause, detail: str = "") -> None:
        self._update(RunState.CONNECTING, cause, detail)

    def initialized(self, pid: int) -> None:
        self._update(RunState.IDLE, Cause.INITIALIZED, pid=pid)

    def fail(self, cause: Cause, detail: str) -> None:
        self._update(RunState.DISCONNECTED, cause, detail)

    def take(self) -> None:
        facts = self.facts
        self._update(RunState.IN_USE, Cause.LEASE_TAKEN, leases=facts.leases + 1, calls=facts.calls + 1, pid=facts.pid)

    def give_back(self) -> None:
        """Returns one lease. One that outlived its process tree has nothing to give back."""
        facts = self.facts
        if facts.state is RunState.DISCONNECTED:
            return
        last = facts.state is RunState.IN_USE and facts.leases == 1
        to = RunState.IDLE if last else facts.state
        self._update(to, Cause.LEASE_RETURNED, leases=facts.leases - 1, calls=facts.calls, pid=facts.pid)

    def expire(self, cause: Cause, detail: str = "") -> None:
        facts = self.facts
        self._update(RunState.EXPIRED, cause, detail, leases=facts.leases, calls=facts.calls, pid=facts.pid)

    def reaped(self) -> None:
        """The process tree is gone; leases still held are void. Why it had to go stays readable."""
        facts = self.facts
        why = f"{facts.cause}: {facts.detail}" if facts.detail else str(facts.cause)
        self._update(RunState.DISCONNECTED, Cause.TREE_GONE, why, calls=facts.calls)

    def _update(
        self, to: RunState, cause: Cause, detail: str = "", *, leases: int = 0, calls: int = 0, pid: int | None = None
    ) -> None:
        """The one place that changes a run: legal by the table, and free of contradictions, or not at all.

        Raises:
            IllegalMove
        """
        before = self.facts
        if cause not in LEGAL.get((before.state, to), ()):
            raise IllegalMove(f"{before.state} → {to} on {cause}")
        if to is before.state:
            after = Facts(to, before.cause, before.detail, before.moved_at, leases, calls, pid)
        else:
            after = Facts(to, cause, detail, self._clock(), leases, calls, pid)
        if (problem := after.contradiction()) is not None:
            raise IllegalMove(f"{before.state} → {to} on {cause}: {problem}")
        self.facts = after
        if to is not before.state:
            self._on_move(Move(before.state, to, cause, detail, after.pid or before.pid))
