"""The journal of edits: what was begun and how it ended, so that the next start can recover from a crash.

One append-only file. An entry is on the disk before the first file changes; that it ended is written without waiting.
Each record carries its length and a checksum, so that a torn tail is recognized. When it has grown, it is compacted: of
older operations remains what tells a repetition of their calls. Blocks; safe from several threads.
"""

import logging
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import StoreError
from serena_central.files.atomic import write_whole

logger = logging.getLogger(__name__)

LONGEST_CUT_BYTES = 1_000_000
"""A record that claims to be longer, and is not there as a whole, is damage: much may lie behind its head."""

ROTATE_BYTES = 16_000_000
"""Growth in bytes after which a journal is compacted."""

KEPT_WHOLE_BYTES = 4_000_000
"""Of the newest operations, which a compaction leaves as they are."""

MOST_KEPT = 10_000
"""Operations that a compaction leaves, most of them without steps and record: by number and not by age, which a clock
that jumps would falsify."""

_HEAD = struct.Struct("<I8s")


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One file of an operation. Digests are None where there is no file. `fresh` holds the new text until it takes its
    place; `kept` the old one, in operations of several steps, until all are done. `below`: the innermost folder that
    stays, where folders in it are made for the file, or go along with it once they are empty."""

    path: str
    old: str | None
    new: str | None
    fresh: str | None
    kept: str | None
    below: str | None = None


class Entry(msgspec.Struct, frozen=True, tag=True):
    """An operation that was begun. `record` is the caller's own, given back at recovery; `repeat` tells a repetition of
    the call that asked for it."""

    id: str
    steps: list[Step]
    record: bytes
    repeat: str | None = None


class End(msgspec.Struct, frozen=True, tag=True):
    """`applied` is None if it is unknown."""

    id: str
    applied: bool | None


class Gap(msgspec.Struct, frozen=True, tag=True):
    """The journal was lost or damaged: it lacks operations, until `Journal.add_missing` has restored them."""


class Origin(msgspec.Struct, frozen=True, tag=True):
    """The file that the journal was begun in. In a copy at least one of them differs: a copy must not
    complete or roll back what the server of the original is doing."""

    path: str
    inode: int


Record = Entry | End | Gap | Origin


class Past(msgspec.Struct, frozen=True):
    """What the journal says of an operation. `applied` is None for one that never `ended`, and for one whose
    outcome is unknown: the server was killed while it was made, and its file was changed since."""

    entry: Entry
    applied: bool | None = None
    ended: bool = False


class Journal:
    """See the module. `open` first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = False
        """Whether `open` found all that was ever written; not where the file was new, lost or damaged."""
        self._descriptor = -1
        self._lock = threading.Lock()
        self._rotate_at = 0
        """The size beyond which it is compacted."""
        self._encoder = msgspec.msgpack.Encoder()

    def open(self) -> list[Past]:
        """Opens or makes the file, and tells what stands in it, oldest first.

        The journal of a home that was copied or moved is set aside: its operations belong to another server. Of a
        damaged one, what stands before the damage counts, and a copy is kept: operations behind it are not recovered. A
        last record that is cut off is none of that.

        Raises:
            StoreError
        """
        try:
            _set_foreign_aside(self.path)
            self._descriptor = self._opened()
            data = self.path.read_bytes()
            contents = _read(data)
            self.whole = contents.whole
            if contents.sound < len(data):
                if not _is_cut_off(data, contents.sound):
                    _keep_damaged(self.path, data, contents.sound)
                os.ftruncate(self._descriptor, contents.sound)
            with suppress(OSError):  # a full disk stops edits, and nothing else
                if contents.origin is None:
                    self._append(_origin_of(self.path))
                if not self.whole:
                    self._append(Gap())
        except OSError as error:
            raise StoreError(f"The journal of edits {self.path} can't be used: {error.strerror}.") from error
        self._rotate_at = ROTATE_BYTES
        return list(contents.past.values())

    def begin(self, entry: Entry) -> None:
        """Writes an entry and waits until it is on the disk.

        Raises:
            OSError
        """
        with self._lock:
            self._compact_if_large()
            self._append(entry)
            if sys.platform == "linux":
                os.fdatasync(self._descriptor)
            else:
                os.fsync(self._descriptor)

    def end(self, entry_id: str, *, applied: bool | None) -> None:
        """Says how an operation ended. A full disk is no reason to fail: recovery finds out the same."""
        with self._lock, suppress(OSError):
            self._append(End(entry_id, applied))

    def past(self) -> list[Past]:
        """What stands in it now, oldest first; what is just being appended may be missing.

        Raises:
            StoreError
        """
        try:
            return list(_read(self.path.read_bytes()).past.values())
        except OSError as error:
            raise StoreError(f"The journal of edits {self.path} can't be read: {error.strerror}.") from error

    def add_missing(self, lost: list[Past]) -> None:
        """Adds operations that were lost, from another record; afterwards the journal is complete.

        Raises:
            OSError
        """
        with self._lock:
            past = _read(self.path.read_bytes()).past
            self.whole = True
            self._rewrite([*(one for one in lost if one.entry.id not in past), *past.values()])

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _append(self, record: Record) -> None:
        data = self._encoded(record)
        end = os.fstat(self._descriptor).st_size
        try:
            while data:  # where there is room for a part, the rest says why there is no more
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            os.ftruncate(self._descriptor, end)  # half a record would hide those after it
            raise

    def _encoded(self, record: Record) -> bytes:
        payload = self._encoder.encode(record)
        return _HEAD.pack(len(payload), _checksum(payload)) + payload

    def _compact_if_large(self) -> None:
        """A compaction that fails leaves the journal as it is, and is tried again when it has grown once more."""
        size = os.fstat(self._descriptor).st_size
        if size <= self._rotate_at:
            return
        try:
            self._rewrite(list(_read(self.path.read_bytes()).past.values()))
        except OSError as error:
            logger.warning("the journal of edits could not be compacted: %s", error)
            self._rotate_at = size + ROTATE_BYTES

    def _rewrite(self, past: list[Past]) -> None:
        records: list[Record] = [*_compacted(past)] if self.whole else [Gap(), *_compacted(past)]
        write_whole(self.path, b"".join(map(self._encoded, records)))
        _sync_folder(self.path.parent)  # what is appended from now on must not be lost with the new file
        old, self._descriptor = self._descriptor, self._opened()
        os.close(old)
        self._append(_origin_of(self.path))
        self._rotate_at = os.fstat(self._descriptor).st_size + ROTATE_BYTES


def _compacted(past: list[Past]) -> Iterable[Record]:
    """The records that remain, the oldest first."""
    whole = 0
    kept: list[Past] = []
    for one in reversed(past):
        whole += len(msgspec.msgpack.encode(one.entry))
        if not one.ended or whole <= KEPT_WHOLE_BYTES:
            kept.append(one)
        elif one.entry.repeat is not None and len(kept) < MOST_KEPT:
            kept.append(replace(one, entry=replace(one.entry, steps=[], record=b"")))
    for one in reversed(kept):
        yield one.entry
        if one.ended:
            yield End(one.entry.id, one.applied)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _origin_of(path: Path) -> Origin:
    return Origin(str(path.resolve()), path.stat().st_ino)


def _set_foreign_aside(path: Path) -> None:
    """Renames a journal that was begun as another file.

    Raises:
        OSError
    """
    try:
        contents = _read(path.read_bytes())
    except FileNotFoundError:
        return
    origin = contents.origin
    if origin is None or origin == _origin_of(path):
        return
    aside = path.with_name(f"{path.name}.copied-{time.time_ns()}")
    path.rename(aside)
    cut_off = [one for one in contents.past.values() if not one.ended]
    files = sorted({step.path for one in cut_off for step in one.entry.steps})
    logger.warning(
        "The journal of edits %s is a copy of %s, or was moved; it was set aside as %s.%s",
        path,
        origin.path,
        aside.name,
        f" Edits of {', '.join(files)} were in progress in it and are not touched: the server of {origin.path} "
        "recovers them."
        if files
        else "",
    )


def _is_cut_off(data: bytes, sound: int) -> bool:
    """Whether what can't be read is one record whose writing was cut off: what it was about to begin never began."""
    left = len(data) - sound
    if left < _HEAD.size:
        return True
    length, _ = _HEAD.unpack_from(data, sound)
    return left - _HEAD.size < length <= LONGEST_CUT_BYTES


def _keep_damaged(path: Path, data: bytes, sound: int) -> None:
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    try:
        write_whole(aside, data)
        kept = f"the whole of it is kept as {aside.name}"
    except OSError as error:  # a full disk stops edits, and nothing else
        kept = f"it could not be kept: {error.strerror}"
    logger.warning(
        "The journal of edits %s is damaged: %d of its %d bytes can't be read, and %s. Edits that were in progress in "
        "this part are not recovered: if the server was killed meanwhile, compare the files with your repository.",
        path,
        len(data) - sound,
        len(data),
        kept,
    )


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=8).digest()


class _Contents(NamedTuple):
    """What a journal holds. `sound`: the length of what can be read; `whole`: whether that is all there ever was."""

    past: dict[str, Past]
    sound: int
    whole: bool
    origin: Origin | None


def _read(data: bytes) -> _Contents:
    decoder = msgpack_decoder(Record)
    past: dict[str, Past] = {}
    origin: Origin | None = None
    place, whole = 0, bool(data)
    while place + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, place)
        payload = data[place + _HEAD.size : place + _HEAD.size + length]
        if len(payload) < length or _checksum(payload) != checksum:
            break
        place += _HEAD.size + length
        try:
            record = decoder.decode(payload)
        except msgspec.DecodeError:  # of another version
            whole = False
            continue
        if isinstance(record, Gap):
            whole = False
        elif isinstance(record, Origin):
            origin = record
        elif isinstance(record, Entry):
            past[record.id] = Past(record)
        elif record.id in past:
            past[record.id] = Past(past[record.id].entry, record.applied, ended=True)
    return _Contents(past, place, whole and place == len(data), origin)
