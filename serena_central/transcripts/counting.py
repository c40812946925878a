"""Brings the usage store up to date: reads what was appended to the transcripts since the last time.

A run that is interrupted keeps what it has read. What is read twice counts once, so that two runs at a time do no harm.
"""

from collections.abc import Sequence
from contextlib import nullcontext

import msgspec

from serena_central.core.words import counted
from serena_central.store.usage_store import KnownFile, StoredRequest, UsageStore, UsageWriter
from serena_central.transcripts.parallel_reading import PARALLEL_BYTES, Job, readings
from serena_central.transcripts.pricing import Prices, imported_beside
from serena_central.transcripts.reading import Reading, add
from serena_central.transcripts.requests import Origin, Request
from serena_central.transcripts.roots import Root, transcripts_in

BATCH = 50_000
"""Requests held in memory before they are written."""

BATCH_BYTES = 100_000_000
"""Bytes read between two transactions at most: what an interrupted run does again."""


class Update(msgspec.Struct):
    """What a run did. `dropped` are lines that it could not read, `unreadable` files and folders, each with the
    reason."""

    files: int = 0
    bytes_read: int = 0
    dropped: int = 0
    unreadable: list[str] = []


def omissions(store: UsageStore, done: Update) -> list[str]:
    """What the store lacks after an update, in sentences.

    Raises:
        StoreError
    """
    dropped = store.dropped()
    lines = f"{counted(dropped, 'line')} could not be read; `serena-central usage --audit` lists them."
    return [*([lines] if dropped else []), *(f"Not read: {one}" for one in done.unreadable)]


def update(store: UsageStore, roots: Sequence[Root], prices: Prices) -> Update:
    """Reads what is new.

    Raises:
        StoreError
    """
    done = Update()
    stamp = prices.stamp()
    if store.setting("prices") != stamp:
        with store.writing() as writer:
            writer.forget_costs()
            _price(writer, prices)
            writer.put_setting("prices", stamp)
    known = store.files()
    batch = _Batch(prices)
    jobs = [Job(found, known.get(found.path)) for found in transcripts_in(roots, done.unreadable.append)]
    due = [job for job in jobs if job.is_due]
    is_long = sum(job.size for job in due) >= PARALLEL_BYTES
    with imported_beside() if is_long else nullcontext(), readings(due) as results:
        for job, reading in results:
            if isinstance(reading, OSError):
                done.unreadable.append(f"{job.found.path}: {reading.strerror or reading}")
                continue
            done.files += 1
            done.bytes_read += reading.bytes_read
            done.dropped += reading.dropped
            batch.add(reading)
            if len(batch.requests) >= BATCH or batch.bytes_read >= BATCH_BYTES:
                batch.write(store)
    batch.write(store)
    return done


class _Batch:
    """What was read and is not written yet."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._clear()

    def _clear(self) -> None:
        self.requests: dict[int, Request] = {}
        self.failures: list[int] = []
        self.files: list[KnownFile] = []
        self.bytes_read = 0

    def add(self, reading: Reading) -> None:
        for one in reading.requests:
            add(self.requests, one)
        self.failures += reading.failures
        self.files.append(reading.file)
        self.bytes_read += reading.bytes_read

    def write(self, store: UsageStore) -> None:
        if not (self.files or self.requests or self.failures):
            return
        with store.writing() as writer:
            origins: dict[Origin, int] = {}
            rows: list[StoredRequest] = []
            for one in self.requests.values():
                origin = origins.get(one.origin)
                if origin is None:
                    origin = origins[one.origin] = writer.origin(msgspec.structs.astuple(one.origin))
                rows.append(stored(one, origin, self._prices.cost(one)))
            writer.put_requests(rows)
            writer.put_tools(
                (tool, one.key, name) for one in self.requests.values() for tool, name in one.tools.items()
            )
            writer.put_failures(self.failures)
            _price(writer, self._prices)
            for file in self.files:
                writer.put_file(file)
        self._clear()


def stored(one: Request, origin: int, cost: float | None) -> StoredRequest:
    return StoredRequest(
        one.key, one.at, origin, one.input, one.output, one.write_5m, one.write_1h, one.read, one.searches, one.fast,
        one.sidechain, one.stated_cost, cost, cost is None,
    )  # fmt: skip


def _price(writer: UsageWriter, prices: Prices) -> None:
    """Finds the cost of requests that have none yet: new rates, or counts that another file has raised."""
    writer.put_costs(
        (
            row.key,
            prices.cost(
                Request(
                    key=row.key,
                    at=row.at,
                    origin=Origin("", "", "", "", model),
                    input=row.input,
                    output=row.output,
                    write_5m=row.write_5m,
                    write_1h=row.write_1h,
                    read=row.read,
                    searches=row.searches,
                    fast=bool(row.fast),
                    stated_cost=row.stated_cost,
                )
            ),
        )
        for row, model in writer.without_cost()
    )
