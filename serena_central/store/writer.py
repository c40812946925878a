"""The single writer: takes rows without ever waiting or failing, and flushes them in batches.

Rows with the same key are coalesced, the last one wins. The queue is bounded; in a full one, rows of a lower rank make
room for others. What is dropped is counted and said, at most once a minute. Knows the database only as a function that
blocks.
"""

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import StoreDropped, StoreFailed, StoreRecovered
from serena_central.core.events import EventBus, Severity
from serena_central.core.words import counted
from serena_central.standalone.backoff import backoff_s
from serena_central.store.rows import Change, Notice, Removal, Row


class Flood:
    """True while more than `per_s` come and those beyond it are more than `burst`. However long a flood was, it is over
    `burst / per_s` seconds after its last."""

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._level = 0.0
        """Of a bucket that what comes fills and that runs out at `per_s`, as it was at `_at`."""
        self._at = clock()

    def add(self) -> None:
        """One more has come."""
        now = self._clock()
        level = self._level - (now - self._at) * self._per_s
        if level < 2 * self._burst:
            level = level + 1 if level > 0 else 1.0
        self._level, self._at = level, now

    def __bool__(self) -> bool:
        return self._level_at(self._clock()) > self._burst

    def _level_at(self, now: float) -> float:
        return max(0.0, self._level - (now - self._at) * self._per_s)


logger = logging.getLogger(__name__)

FLUSH_AFTER_S = 0.2
"""How long the first row of a batch waits for company."""

BATCH_ROWS = 400
"""A batch of this size does not wait any longer: a hundred calls. Each takes the writer half as long as in batches of
five and twenty."""

QUEUE_ROWS = 10_000
"""Maximum of queued rows: some 20 MB, or three seconds of a thousand calls each."""

FLOOD_ROWS_PER_S = 700
"""Of two hundred calls: nobody waits for the newest of so many, because the next one is newer."""

BURST_ROWS = 2000
"""What a few calls may put at once that show the names of a large file."""

RETRY_S = (0.25, 30.0)
"""First and longest pause after a failure; each is twice the one before."""

FAILURES_TO_TELL = 3
"""A lock that passes by itself is no news."""

SECURED_S = 0.5
"""How long those wait who want to be sure that rows survive: what happens in a kill is no reason to stand still now."""

STOP_S = 5.0
"""How long the last flush may take."""


class _LateRow(NamedTuple):
    """A row that is made when it is written."""

    kind: type[Row]
    make: Callable[[], Row]


Write = Callable[[Sequence[Change]], int]
"""Writes a batch and returns how many rows it refused. Blocks. Raises: StoreError if none was written."""


class Writer:
    """Belongs to the event loop's thread. `put` and `remove` never block and never raise."""

    def __init__(
        self,
        write: Write,
        bus: EventBus,
        *,
        queue_rows: int = QUEUE_ROWS,
        tell_every_s: float = 60.0,
        first_after_s: float = FLUSH_AFTER_S,
    ) -> None:
        """`first_after_s`: how long the first batch may wait; `hasten` ends that."""
        self._write = write
        self._bus = bus
        self._queue_rows = queue_rows
        self._tell_every_s = tell_every_s
        self._pending: dict[Hashable, Change | _LateRow] = {}
        self._ranks = _no_ranks()
        """The keys of what is pending, by rank, the oldest first."""
        self._flush_after_s = first_after_s
        self._numbers = itertools.count()
        self._wakeup = anyio.Event()
        self._batch_full = anyio.Event()
        self._flushed = anyio.Event()
        self._in_flight: anyio.Event | None = None
        self._writing = 0
        """Rows of the batch in flight."""
        self._failures = 0
        self._flood = Flood(FLOOD_ROWS_PER_S, BURST_ROWS)
        self._unreported: Counter[str] = Counter()
        self._told_at = -tell_every_s
        self.dropped: Counter[str] = Counter()
        """Rows that will never be written, by table; those that the database refused by `refused`."""
        self.problem: str | None = None
        """Why the database can't be written just now."""

    @property
    def queued(self) -> int:
        """Rows that are not written yet."""
        return len(self._pending) + self._writing

    def put(self, row: Row) -> None:
        """Writes `row` soon. The writer owns it from now on: change a copy."""
        key = row.key
        self._add((row.table, *[getattr(row, name) for name in key]) if key else next(self._numbers), row)

    def put_late(self, kind: type[Row], *key: Any, make: Callable[[], Row]) -> None:
        """Writes soon the row with this key that `make` returns when it is written: for what changes more often than
        that. `make` is called in the event loop's thread, and must not raise."""
        self._add((kind.table, *key), _LateRow(kind, make))

    def remove(self, kind: type[Row], *key: Any) -> None:
        """Deletes the row with this key soon."""
        self._add((kind.table, *key), Removal(kind, key))

    def notify(self, notice: Notice) -> None:
        """Notifies the other servers with this database when what was put before is committed."""
        self._add(notice, notice)

    def count_lost(self, table: str, count: int = 1) -> None:
        """Counts dropped rows; they are published with the next event."""
        if count:
            self._unreported[table] += count
            self.dropped[table] += count

    async def flush(self) -> None:
        """Returns when what was put before has been written or dropped; while the database fails, after one attempt.

        Only while `run` runs.
        """
        if self._in_flight is not None:
            await self._in_flight.wait()
        if self._pending:
            flushed = self._flushed
            self._batch_full.set()
            await flushed.wait()

    def hasten(self) -> None:
        """Writes what waits, and from now on each batch soon."""
        self._flush_after_s = FLUSH_AFTER_S
        if self._pending:
            self._batch_full.set()

    async def survives_a_kill(self) -> bool:
        """Flushes, for no longer than `SECURED_S`, what was put before: whether it is in the database, where a kill of
        this process does not reach it. False at once while the database fails. Only while `run` runs."""
        with anyio.move_on_after(SECURED_S):
            if self.problem is None:
                await self.flush()
                return self.problem is None
        return False

    async def caught_up(self) -> bool:
        """Flushes and returns True; in a flood of rows, or while the database fails, returns False at once.

        For who shows what is written, and can look again soon. Only while `run` runs.
        """
        if not self._flood and self.problem is None:
            await self.flush()
            return self.problem is None
        return False

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Writes until cancelled, then once more."""
        task_status.started()
        try:
            while True:
                await self._rows_or_news()
                with anyio.move_on_after(self._flush_after_s):
                    await self._batch_full.wait()
                self._flush_after_s = FLUSH_AFTER_S
                await self._flush_once()
                if self._failures:
                    await anyio.sleep(backoff_s(self._failures, first_s=RETRY_S[0], cap_s=RETRY_S[1]))
        finally:
            with anyio.move_on_after(STOP_S, shield=True):
                await self._flush_once()
            self._drop(self._taken().values())
            self._tell_dropped(now=True)

    def _add(self, key: Hashable, row: Change | _LateRow) -> None:
        self._flood.add()
        if not self._pending:
            self._wakeup.set()
        self._queue(key, row)
        if len(self._pending) >= BATCH_ROWS:
            self._batch_full.set()

    def _queue(self, key: Hashable, row: Change | _LateRow) -> None:
        """Queues a row, or drops the least important one: views of a huge file must not cost the row of an edit."""
        pending = self._pending
        if key not in pending:
            rank = _rank(row)
            if len(pending) >= self._queue_rows:
                lower = next((keys for keys in self._ranks[:rank] if keys), None)
                if lower is None:
                    self._drop([row])
                    return
                oldest = next(iter(lower))
                del lower[oldest]
                self._drop([pending.pop(oldest)])
            self._ranks[rank][key] = None
        pending[key] = row

    def _taken(self) -> dict[Hashable, Change | _LateRow]:
        """All that is queued; the queue is empty then."""
        taken, self._pending, self._ranks = self._pending, {}, _no_ranks()
        return taken

    async def _rows_or_news(self) -> None:
        """Waits for rows; publishes dropped rows once their minute has passed."""
        while not self._pending:
            self._wakeup = anyio.Event()
            with anyio.move_on_after(self._report_in_s() if self._unreported else None):
                await self._wakeup.wait()
            self._tell_dropped()

    async def _flush_once(self) -> None:
        batch = self._taken()
        self._writing = len(batch)
        self._batch_full = anyio.Event()
        flushed = self._in_flight = self._flushed
        self._flushed = anyio.Event()
        try:
            if batch:
                rows = [row.make() if isinstance(row, _LateRow) else row for row in batch.values()]
                with anyio.CancelScope(shield=True):  # a batch that was taken is written, or kept
                    self.count_lost("refused", await anyio.to_thread.run_sync(self._write, rows))
                self._recovered()
        except StoreError as error:
            self._keep(batch)
            self._failed(error)
        except Exception:
            logger.exception("a batch of %d rows could not be written", len(batch))
            self._drop(batch.values())
        finally:
            self._in_flight = None
            self._writing = 0
            flushed.set()
            self._tell_dropped()

    def _keep(self, batch: dict[Hashable, Change | _LateRow]) -> None:
        """Puts a batch back before what came meanwhile."""
        for key, row in (batch | self._taken()).items():
            self._queue(key, row)

    def _failed(self, error: StoreError) -> None:
        self._failures += 1
        self.problem = str(error)
        if self._failures == FAILURES_TO_TELL:
            self._bus.publish(StoreFailed(message=str(error), severity=Severity.ERROR))

    def _recovered(self) -> None:
        if self._failures >= FAILURES_TO_TELL:
            self._bus.publish(StoreRecovered(message="The database is writable again."))
        self._failures = 0
        self.problem = None

    def _drop(self, rows: Iterable[Change | _LateRow]) -> None:
        for row in rows:
            self.count_lost(_table(row))

    def _report_in_s(self) -> float:
        return self._told_at + self._tell_every_s - time.monotonic()

    def _tell_dropped(self, *, now: bool = False) -> None:
        if self._unreported and (now or self._report_in_s() <= 0):
            rows, self._unreported = dict(self._unreported), Counter()
            self._told_at = time.monotonic()
            lost = sum(rows.values())
            text = f"{counted(lost, 'row')} {'was' if lost == 1 else 'were'} lost."
            self._bus.publish(StoreDropped(message=text, severity=Severity.WARNING, rows=rows))


def _no_ranks() -> tuple[dict[Hashable, None], ...]:
    return {}, {}, {}


def _rank(row: "Change | _LateRow") -> int:
    if isinstance(row, Notice):
        return Row.rank
    return row.rank if isinstance(row, Row) else row.kind.rank


def _table(row: "Change | _LateRow") -> str:
    if isinstance(row, Notice):
        return "notice"
    return row.table if isinstance(row, Row) else row.kind.table
