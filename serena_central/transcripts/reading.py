"""Reads what was appended to one transcript: its requests, each once, and where the next reading continues."""

import hashlib
from pathlib import Path
from typing import BinaryIO

import msgspec

from serena_central.core.decoding import from_json
from serena_central.store.usage_store import KnownFile
from serena_central.transcripts.requests import NO_TOKENS, Dropped, Failure, Request
from serena_central.transcripts.roots import FoundFile
from serena_central.transcripts.source import Source

HEAD, BEFORE, DIGEST = 64, 4096, 16
"""Bytes that tell a file from one that replaced it: its first ones, which those of one client and project may have in
common, and a digest of those before the place where the next reading continues."""


class Reading(msgspec.Struct, gc=False):
    """What one reading found. `failures` are ids of failed tool calls; `dropped` lines could not be read."""

    file: KnownFile
    requests: list[Request]
    failures: list[int]
    bytes_read: int
    dropped: int


def read_transcript(found: FoundFile, before: KnownFile | None) -> Reading:
    """Reads on from where a file was known `before`, from the start if it was replaced since.

    Raises:
        OSError
    """
    faults = _Faults()
    requests: dict[int, Request] = {}
    failures: list[int] = []
    path = Path(found.path)
    with path.open("rb", buffering=0) as file:
        source = Source(path=path, root=found.root.folder, file=file)
        dropped_before = 0
        if before is not None and before.consumed <= found.size and _goes_on(file, before):
            source.consumed, source.state = before.consumed, from_json(before.state)
            dropped_before = before.dropped
        begun = source.consumed
        for one in found.root.form.read(source, faults):
            if isinstance(one, Failure):
                failures.append(one.tool)
            else:
                add(requests, one)
        mark = _head(file) + _digest_before(file, source.consumed)
    # A last line without its end is read again: it may be half written.
    new = faults.count - (faults.last >= source.consumed)
    state = msgspec.json.encode(source.state).decode()
    # A file that grew while it was read is seen as changed by the next run: its size then is another.
    known = KnownFile(
        found.path, found.size, found.mtime_ns, found.inode, source.consumed, mark, state, dropped_before + new
    )
    return Reading(known, list(requests.values()), failures, max(source.consumed - begun, 0), new)


def _goes_on(file: BinaryIO, before: KnownFile) -> bool:
    """Whether a file was only added to. One that was rewritten may be longer than before, too."""
    head, digest = before.head[:-DIGEST], before.head[-DIGEST:]
    return _head(file).startswith(head) and _digest_before(file, before.consumed) == digest


def _head(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(HEAD)


def _digest_before(file: BinaryIO, offset: int) -> bytes:
    start = max(offset - BEFORE, 0)
    file.seek(start)
    return hashlib.blake2b(file.read(offset - start), digest_size=DIGEST).digest()


class _Faults:
    """How many lines could not be read, and the offset of the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.last = -1

    def __call__(self, one: Dropped) -> None:
        if one.reason != NO_TOKENS:
            self.count += 1
            self.last = one.offset


def add(requests: dict[int, Request], request: Request) -> None:
    """The same rule as the store's (`usage_store`), for the many rows of one answer."""
    other = requests.get(request.key)
    requests[request.key] = request if other is None else merged(other, request)


def merged(first: Request, second: Request) -> Request:
    """One request of two rows: the largest counts, but both cache writes of one row, and the tools of both; the time of
    the row with more tokens, else the earlier one; the origin of the one that is no replay."""
    if (second.tokens, -second.at) > (first.tokens, -first.at):
        first, second = second, first
    if _holds(first, second):
        return first
    writer = max(first, second, key=lambda one: one.written)
    owner = second if first.sidechain and not second.sidechain else first
    costs = [cost for cost in (first.stated_cost, second.stated_cost) if cost is not None]
    return Request(
        key=first.key,
        at=first.at,
        origin=owner.origin,
        input=max(first.input, second.input),
        output=max(first.output, second.output),
        write_5m=writer.write_5m,
        write_1h=writer.write_1h,
        read=max(first.read, second.read),
        searches=max(first.searches, second.searches),
        fast=first.fast or second.fast,
        sidechain=owner.sidechain,
        stated_cost=max(costs, default=None),
        tools={**second.tools, **first.tools} if second.tools else first.tools,
    )


def _holds(more: Request, less: Request) -> bool:
    """Whether the second row adds nothing: so it is with most rows of an answer that was streamed."""
    return (
        more.sidechain <= less.sidechain
        and more.input >= less.input
        and more.output >= less.output
        and more.read >= less.read
        and more.written >= less.written
        and more.searches >= less.searches
        and more.fast >= less.fast
        and less.stated_cost is None
        and (not less.tools or less.tools.keys() <= more.tools.keys())
    )
