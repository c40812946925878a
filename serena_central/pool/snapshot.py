"""Snapshots of the pool for pages and the API: plain data, made on demand."""

from pathlib import Path

import msgspec

from serena_central.core.errors import ServerNotInstalled
from serena_central.pool.key import ServerKey
from serena_central.pool.run import Holder, Run
from serena_central.pool.slot import Slot
from serena_central.pool.state import RunState
from serena_central.processes.usage import ProcessUsage

_STDERR_SHOWN = 2000
"""Characters of the end of a server's stderr that are shown."""


class BreakerSnapshot(msgspec.Struct, frozen=True):
    """`opens_until` is the Unix time until which starts are refused, None unless open."""

    state: str
    failures: int
    opens_until: float | None
    last_failure: str


class ServerSnapshot(msgspec.Struct, frozen=True):
    """One run of a server key; a key whose server does not run is shown by its last run.

    `calls` counts the leases of this run, `restarts` the key's starts of a program but the first; `memory_bytes` and
    `cpu_percent` (of one core) are what the reaper measured last. `idle_s` is 0 while in use; `age_s` counts from the
    start, and is 0 when it runs no more.
    `draining` marks a run that finishes its calls beside its successor.
    """

    key: ServerKey
    root: Path
    server: str
    languages: tuple[str, ...]
    version: str
    state: RunState
    run: int
    pid: int | None
    memory_bytes: int
    cpu_percent: float
    attached: int
    leases: int
    calls: int
    restarts: int
    idle_s: float
    age_s: float
    breaker: BreakerSnapshot
    reason: str
    stderr_tail: str
    draining: bool
    missing: bool = False
    """There was no program to start."""
    holders: tuple[Holder, ...] = ()
    """Who holds its leases, the longest first."""
    open_documents: int = 0
    processes: tuple[ProcessUsage, ...] = ()
    """Its processes as measured last, the largest first."""


def of_slot(slot: Slot, *, attached: int, now: float, unix_now: float) -> list[ServerSnapshot]:
    """`now` is by the pool's clock, `unix_now` the same moment in Unix time. Newest run first."""
    breaker = slot.breaker
    shown_breaker = BreakerSnapshot(
        breaker.state.value,
        breaker.failures,
        unix_now + breaker.open_for_s if breaker.open_for_s else None,
        breaker.last_failure,
    )
    runs = sorted(slot.runs, key=lambda run: -run.number) or ([slot.last] if slot.last else [])
    return [_of_run(slot, run, shown_breaker, attached, now) for run in runs]


def _of_run(slot: Slot, run: Run, breaker: BreakerSnapshot, attached: int, now: float) -> ServerSnapshot:
    facts = run.life.facts
    gone = facts.state is RunState.DISCONNECTED
    return ServerSnapshot(
        key=slot.key,
        root=slot.key.root,
        server=slot.key.server,
        languages=run.wanted.spec.languages,
        version=run.version,
        state=facts.state,
        run=run.number,
        pid=facts.pid,
        memory_bytes=0 if gone else run.memory_bytes,
        cpu_percent=0.0 if gone else round(run.cpu_percent, 1),
        attached=attached,
        leases=facts.leases,
        calls=facts.calls,
        restarts=max(0, slot.starts - slot.missed - 1),
        idle_s=now - facts.moved_at if facts.state is RunState.IDLE else 0.0,
        age_s=0.0 if gone else now - run.started_at,
        breaker=breaker,
        reason=f"{facts.cause}: {facts.detail}" if facts.detail else str(facts.cause or ""),
        stderr_tail=run.stderr_tail[-_STDERR_SHOWN:],
        draining=facts.state is RunState.EXPIRED and facts.leases > 0,
        missing=gone and isinstance(run.failure, ServerNotInstalled),
        holders=tuple(Holder(label, now - at) for label, at in sorted(run.holders.values(), key=lambda held: held[1])),
        open_documents=0 if gone else run.open_documents,
        processes=() if gone else run.processes,
    )
