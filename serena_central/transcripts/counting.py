"""Brings the usage store up to date: reads what was appended to the transcripts since the last time.

A run that is interrupted keeps what it has read. What is read twice counts once, so that two runs at a time do no harm.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from serena_central.store.usage_store import KnownFile, StoredRequest, UsageStore, UsageWriter
from serena_central.transcripts.native import claude_code, codex, gemini
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.requests import (
    NO_TOKENS,
    Dropped,
    Failure,
    Origin,
    Request,
)
from serena_central.transcripts.source import Form, Source

FORMS: tuple[Form, ...] = (claude_code.FORM, codex.FORM, gemini.FORM)

BATCH = 20_000
"""Requests held in memory before they are written."""

BATCH_BYTES = 100_000_000
"""Bytes read between two transactions at most: what an interrupted run does again."""

HEAD = 64
"""First bytes of a file that tell it from one that replaced it."""


class Root(msgspec.Struct, frozen=True):
    """A folder of transcripts, and how they are read."""

    folder: Path
    form: Form


class Update(msgspec.Struct):
    """What a run did. `dropped` are lines that it could not read, `unreadable` files that could not be opened."""

    files: int = 0
    bytes_read: int = 0
    dropped: int = 0
    unreadable: list[str] = []


class FoundFile(msgspec.Struct, frozen=True):
    path: str
    size: int
    mtime_ns: int
    inode: int
    root: Root


def roots_of(home: Path, environment: Mapping[str, str]) -> list[Root]:
    """Where the clients of a user keep their transcripts; folders that exist, each once."""
    found: dict[Path, Root] = {}
    for form in FORMS:
        for folder in form.roots(home, environment):
            if folder.is_dir():
                found.setdefault(folder.resolve(), Root(folder.resolve(), form))
    return list(found.values())


def transcripts_in(roots: Iterable[Root]) -> Iterator[FoundFile]:
    """All transcripts, in the order of their paths. Links are not followed."""
    for root in roots:
        yield from sorted(_walk(str(root.folder), root), key=lambda one: one.path)


def _walk(folder: str, root: Root) -> Iterator[FoundFile]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, root)
        elif root.form.is_transcript(entry.name) and entry.is_file(follow_symlinks=False):
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield FoundFile(entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ino, root)


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
    for found in transcripts_in(roots):
        before = known.get(found.path)
        if before is not None and (before.size, before.mtime_ns, before.inode) == (
            found.size,
            found.mtime_ns,
            found.inode,
        ):
            continue
        try:
            after = batch.read(found, before, done)
        except OSError as error:
            done.unreadable.append(f"{found.path}: {error.strerror or error}")
            continue
        done.files += 1
        batch.files.append(after)
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
        self.requests: dict[bytes, Request] = {}
        self.failures: list[bytes] = []
        self.files: list[KnownFile] = []
        self.bytes_read = 0

    def read(self, found: FoundFile, before: KnownFile | None, done: Update) -> KnownFile:
        """Raises OSError."""
        faults = _Faults()
        path = Path(found.path)
        with path.open("rb", buffering=0) as file:
            head = file.read(HEAD)
            source = Source(path=path, root=found.root.folder, file=file)
            dropped_before = 0
            if before is not None and before.consumed <= found.size and head.startswith(before.head):
                source.consumed, source.state = before.consumed, msgspec.json.decode(before.state)
                dropped_before = before.dropped
            begun = source.consumed
            for one in found.root.form.read(source, faults):
                if isinstance(one, Failure):
                    self.failures.append(one.tool)
                else:
                    self._add(one)
        done.bytes_read += max(source.consumed - begun, 0)
        # A last line without its end is read again: it may be half written.
        new = faults.count - (faults.last >= source.consumed)
        done.dropped += new
        self.bytes_read += max(source.consumed - begun, 0)
        state = msgspec.json.encode(source.state).decode()
        # A file that grew while it was read is seen as changed by the next run: its size then is another.
        return KnownFile(
            found.path, found.size, found.mtime_ns, found.inode, source.consumed, head, state, dropped_before + new
        )

    def _add(self, request: Request) -> None:
        """The same rule as the store's (`usage_store`), for the many rows of one answer."""
        other = self.requests.get(request.key)
        self.requests[request.key] = request if other is None else merged(other, request)

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


class _Faults:
    """How many lines could not be read, and the offset of the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.last = -1

    def __call__(self, one: Dropped) -> None:
        if one.reason != NO_TOKENS:
            self.count += 1
            self.last = one.offset


def merged(first: Request, second: Request) -> Request:
    """One request of two rows: the largest counts, the tools of both; the time of the row with more tokens, else the
    earlier one; the origin of the one that is no replay."""
    if (second.tokens, -second.at) > (first.tokens, -first.at):
        first, second = second, first
    owner = second if first.sidechain and not second.sidechain else first
    costs = [cost for cost in (first.stated_cost, second.stated_cost) if cost is not None]
    return Request(
        key=first.key,
        at=first.at,
        origin=owner.origin,
        input=max(first.input, second.input),
        output=max(first.output, second.output),
        write_5m=max(first.write_5m, second.write_5m),
        write_1h=max(first.write_1h, second.write_1h),
        read=max(first.read, second.read),
        searches=max(first.searches, second.searches),
        fast=first.fast or second.fast,
        sidechain=owner.sidechain,
        stated_cost=max(costs, default=None),
        tools={**second.tools, **first.tools} if second.tools else first.tools,
    )


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
