"""The pool's housekeeping: each sweep measures runs, stops those that are idle or over the budget, and pings the idle
ones.

It inspects slots and acts through them. It has no timer: the pool calls `sweep`.
"""

import logging
import math
from collections.abc import Callable, Iterator
from functools import partial

import anyio
import anyio.to_thread

from serena_central.config.policies import PoolPolicy
from serena_central.core.quoting import quoted
from serena_central.core.rest import rest
from serena_central.lsp.client import LanguageServer
from serena_central.pool.budget import (
    CRITICAL_SHARE,
    SETTLED_S,
    CachedMemory,
    Holder,
    OtherProcess,
    holders_of,
    machine_memory_bytes,
    make_room,
)
from serena_central.pool.interest import Interests
from serena_central.pool.key import ServerKey
from serena_central.pool.ledger import Ledger
from serena_central.pool.node_memory import NodeMemory
from serena_central.pool.run import RESTING_AFTER_S, Run
from serena_central.pool.slot import Slot
from serena_central.pool.state import Cause, RunState
from serena_central.processes.usage import Usage, usage_of

logger = logging.getLogger(__name__)

RESTING_MEASURED_S = 14.0
"""While all servers are at rest they are measured this often, though others of the process may be busy."""

LARGEST_NAMED = 3
"""Servers named where the budget is exceeded."""


def _drop(cache: CachedMemory, _reason: str) -> None:
    cache.drop()


class Reaper:
    """Sweeps the pool's slots. Calls must not overlap."""

    def __init__(
        self,
        slots: dict[ServerKey, Slot],
        *,
        policy: PoolPolicy,
        budget_bytes: int,
        interests: Interests,
        ledger: Ledger,
        clock: Callable[[], float],
        usage: Callable[[LanguageServer], Usage],
        warn: Callable[[str], None],
        free_memory: Callable[[], int],
    ) -> None:
        """`warn` is called with what a person should know, once each time that it comes true. `free_memory`: what the
        machine has left, in bytes."""
        self._slots = slots
        self.policy = policy
        self.budget_bytes = budget_bytes
        self._interests = interests
        self._ledger = ledger
        self._clock = clock
        self._usage = usage
        self._warn = warn
        self._overshot = False
        self._free_memory = free_memory
        self._critical_bytes = int(machine_memory_bytes() * CRITICAL_SHARE)
        self._ending: Run | None = None
        """The run that was ended last because the machine had no memory left."""
        self.others: Callable[[], list[OtherProcess]] = list
        """What else counts into the budget at the moment."""
        self.caches: Callable[[], list[CachedMemory]] = list
        self.node: NodeMemory | None = None
        """Other processes of this machine that share the budget."""
        self._held_elsewhere: list[Holder] = []
        self._other_bytes: dict[int, int] = {}
        """Pid → the memory of such a process with all below it, as last measured."""
        self._measured_at = -math.inf
        self._measuring = anyio.Lock()  # the ledger is written by one at a time

    async def sweep(self) -> None:
        """One pass over everything; takes as long as a hung server's ping may, and delays no lease."""
        if not self._all_rest():
            rest.stir()
            await self.measure()
        elif self._clock() - self._measured_at >= RESTING_MEASURED_S:
            await self.measure()
        if self.node is not None:
            self._held_elsewhere = await anyio.to_thread.run_sync(
                self.node.exchange, self._holding_here(), self._clock()
            )
        self._end_overdue_drains()
        self._retire_idle()
        used_bytes = self._make_room(idle_until=self._clock() - SETTLED_S)
        self._warn_of_overshoot(used_bytes)
        if used_bytes > self.budget_bytes:
            self._end_largest_in_need()
        for slot in self._slots.values():
            slot.replace_worn_out()
        await self._check_health()
        self._forget()

    def _all_rest(self) -> bool:
        others_rest = all(one.idle_s is not None and one.idle_s >= RESTING_AFTER_S for one in self.others())
        return others_rest and all(run.is_resting for run in self._runs())

    def admit(self, needed_bytes: int) -> str | None:
        """Retires idle servers to make room for one more; says why it must not start when those in use leave none.

        The need is a guess, so it only chooses who goes: what really is in use decides.
        """
        used_bytes = self._make_room(needed_bytes)
        if used_bytes < self.budget_bytes:
            return None
        return (
            f"the servers in use take {used_bytes >> 20} MB of the budget of {self.budget_bytes >> 20} MB, "
            "and none is idle; call again later, or stop one"
        )

    def _make_room(self, needed_bytes: int = 0, *, idle_until: float = math.inf) -> int:
        """Retires idle servers, the huge ones and those least recently used first; returns what is in use then."""
        room = make_room(self._holding(), self.budget_bytes, needed_bytes, idle_until=idle_until)
        limit_mb = self.budget_bytes >> 20
        for one in room.retire:
            held_mb = one.memory_bytes >> 20
            huge = one.memory_bytes > self.budget_bytes // 2
            why = f"used {held_mb} MB" if huge else f"was idle longest and used {held_mb} MB"
            one.stop(f"the memory budget of {limit_mb} MB is exceeded; this server {why}")
        return room.used_bytes

    def _holding(self) -> list[Holder]:
        return self._holding_here() + self._held_elsewhere

    def _holding_here(self) -> list[Holder]:
        now = self._clock()
        return (
            holders_of(self._runs(), _expire)
            + [
                Holder(
                    one.name, self.memory_of(one.pid), now - one.idle_s if one.idle_s is not None else None, one.stop
                )
                for one in self.others()
            ]
            + [Holder(one.name, one.memory_bytes, now - one.idle_s, partial(_drop, one)) for one in self.caches()]
        )

    def memory_of(self, pid: int) -> int:
        """What one of the other processes took when it was measured last, with all below it, in bytes."""
        return self._other_bytes.get(pid, 0)

    def _warn_of_overshoot(self, used_bytes: int) -> None:
        """Once for each time that servers in use exceed the budget: they are stopped when they become idle."""
        before, self._overshot = self._overshot, used_bytes > self.budget_bytes
        if not self._overshot or before:
            return
        holders = {
            f"{run.wanted.spec.name} in {quoted(run.wanted.root.name)}": next(
                (label for label, _ in run.holders.values()), "nobody"
            )
            for run in self._runs()
        }
        largest = sorted(self._holding(), key=lambda one: -one.memory_bytes)[:LARGEST_NAMED]
        named = ", ".join(
            f"{one.name} {one.memory_bytes >> 20} MB"
            + (f", held by {holders[one.name]}" if one.name in holders else "")
            for one in largest
        )
        self._warn(
            f"Language servers and MCP servers take {used_bytes >> 20} MB of the memory budget of "
            f"{self.budget_bytes >> 20} MB. They are in use, and are stopped when they become idle: {named}."
        )

    def _end_largest_in_need(self) -> None:
        """Ends the largest server, in use or not, where the machine has hardly any memory left; one at a time, and of
        all that share the budget. Where something else takes more, it would be ended in vain."""
        if self._ending is not None and not self._ending.ended.is_set():
            return
        free_bytes = self._free_memory()
        if free_bytes >= self._critical_bytes:
            return
        runs = [run for run in self._runs() if run.life.usable or run.life.state is RunState.CONNECTING]
        largest = max(runs, key=lambda run: run.memory_bytes, default=None)
        others = [one.memory_bytes for one in self._held_elsewhere] + [self.memory_of(one.pid) for one in self.others()]
        if largest is not None and largest.memory_bytes >= max(others, default=0):
            self._ending = largest
            largest.expire(
                Cause.OUT_OF_MEMORY,
                f"it took {largest.memory_bytes >> 20} MB of the memory budget of {self.budget_bytes >> 20} MB, "
                f"and the machine had {free_bytes >> 20} MB left",
            )

    async def measure(self) -> None:
        """Notes what every server takes, and its processes; some milliseconds each, in a thread, all in one go."""
        async with self._measuring:
            self._measured_at = self._clock()
            running = [(run, pid) for run in self._runs() if (pid := run.life.facts.pid) is not None]
            others = [one.pid for one in self.others()]

            def look() -> tuple[list[Usage], dict[int, int]]:
                self._ledger.record([*(pid for _, pid in running), *others])
                sizes = {pid: usage_of(pid).memory_bytes for pid in others}
                return [self._usage(run.server) for run, _ in running], sizes

            found, self._other_bytes = await anyio.to_thread.run_sync(look)
            for (run, _), usage in zip(running, found, strict=True):
                run.measured(usage)
            for slot in self._slots.values():
                slot.history.measure(slot.runs)

    def _end_overdue_drains(self) -> None:
        limit_s = self.policy.drain_timeout_s
        for run in self._runs():
            facts = run.life.facts
            if facts.state is RunState.EXPIRED and facts.leases and self._clock() - facts.moved_at >= limit_s:
                logger.warning("%s: %d calls did not end within %g s", run.wanted.spec.name, facts.leases, limit_s)
                run.stop()

    def _retire_idle(self) -> None:
        limit_s = self.policy.idle_ttl_s
        for run in self._idle():
            idle_since = run.life.facts.moved_at
            idle_s, share = self._clock() - idle_since, self.budget_bytes // 2
            if run.memory_bytes > share and idle_s >= self.policy.over_share_ttl_s:
                why = f"it took {run.memory_bytes >> 20} MB, more than half of the memory budget"
                run.expire(Cause.MEMORY_BUDGET, f"{why}, and was unused for {idle_s:.0f} s")
                continue
            nobody_since = self._interests.idle_clock_start(run.wanted.root)
            if self._clock() - max(idle_since, nobody_since or idle_since) >= limit_s:
                run.expire(Cause.IDLE_TIMEOUT, f"unused for {self._clock() - idle_since:.0f} s")

    async def _check_health(self) -> None:
        due = self._clock() - self.policy.health_interval_s
        async with anyio.create_task_group() as tasks:
            for run in self._idle():
                if max(run.checked_at, run.life.facts.moved_at) <= due:
                    tasks.start_soon(partial(_check, run))

    def _forget(self) -> None:
        """Drops keys whose last server has been gone for long, or that got none, and roots that nobody is interested
        in, so that the lists do not grow for ever."""
        for key, slot in list(self._slots.items()):
            gone_at = slot.last.life.facts.moved_at if slot.last is not None else slot.made_at
            if not slot.runs and self._clock() - gone_at >= self.policy.forget_after_s:
                del self._slots[key]
        self._interests.forget({key.root for key in self._slots})

    def _runs(self) -> Iterator[Run]:
        for slot in self._slots.values():
            yield from list(slot.runs)

    def _idle(self) -> Iterator[Run]:
        return (run for run in self._runs() if run.life.state is RunState.IDLE)


def _expire(run: Run, reason: str) -> None:
    run.expire(Cause.MEMORY_BUDGET, reason)


async def _check(run: Run) -> None:
    # A lease that was taken meanwhile will find out by itself.
    hangs = await run.how_it_hangs()
    if hangs and run.life.state is RunState.IDLE:
        run.expire(Cause.HANG, f"it was idle, {hangs}")
