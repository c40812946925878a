"""The journal: what was begun and how it ended, so that a crash in the middle can be mended by the next start.

One append-only file. An entry is on the disk before the first file changes; that it ended is written without waiting.
Each record carries its length and a checksum, so that a torn tail is recognised. Blocks; safe from several threads.
"""

import logging
import os
import struct
import threading
import time
from hashlib import blake2b
from pathlib import Path

import msgspec

from serena_central.core.errors import StoreError

logger = logging.getLogger(__name__)

ROTATE_BYTES = 16_000_000
"""A journal beyond this is begun anew when nothing is open."""

_HEAD = struct.Struct("<I8s")


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One file of an operation. Digests are None where there is no file. `fresh` holds the new text until it takes its
    place; `kept` the old one, in operations of several steps, until all are done."""

    path: str
    old: str | None
    new: str | None
    fresh: str | None
    kept: str | None


class Entry(msgspec.Struct, frozen=True, tag=True):
    """An operation that was begun. `record` is the caller's own, given back at recovery."""

    id: str
    steps: list[Step]
    record: bytes


class End(msgspec.Struct, frozen=True, tag=True):
    id: str
    applied: bool


class Origin(msgspec.Struct, frozen=True, tag=True):
    """The file that the journal was begun in. In a copy both differ, or one of them: it must not mend what the server
    of the original is just doing."""

    path: str
    inode: int


class Past(msgspec.Struct, frozen=True):
    """What the journal says of an operation; `applied` is None for one that never ended."""

    entry: Entry
    applied: bool | None


class Journal:
    """See the module. `open` first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self._encoder = msgspec.msgpack.Encoder()

    def open(self) -> list[Past]:
        """Opens or makes the file, and tells what stands in it, oldest first. Raises StoreError.

        The journal of a home that was copied or moved is set aside: none of its operations is this server's to mend.
        """
        try:
            _set_foreign_aside(self.path)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            data = self.path.read_bytes()
            past, sound, origin = _read(data)
            if sound < len(data):
                os.ftruncate(self._descriptor, sound)
            if origin is None:
                self._append(_origin_of(self.path))
        except OSError as error:
            raise StoreError(f"The journal of edits {self.path} can't be used: {error.strerror}.") from error
        self._open = {one.entry.id for one in past.values() if one.applied is None}
        return list(past.values())

    def begin(self, entry: Entry) -> None:
        """Writes an entry and waits until it is on the disk. Raises OSError."""
        with self._lock:
            self._rotate()
            self._append(entry)
            os.fdatasync(self._descriptor)
            self._open.add(entry.id)

    def end(self, entry_id: str, *, applied: bool) -> None:
        """Says how an operation ended. A full disk is no reason to fail: recovery finds out the same."""
        with self._lock:
            self._open.discard(entry_id)
            try:
                self._append(End(entry_id, applied))
            except OSError:
                return

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, record: Entry | End | Origin) -> None:
        payload = self._encoder.encode(record)
        data = _HEAD.pack(len(payload), _checksum(payload)) + payload
        end = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, data) != len(data):
                raise OSError("the disk took a part of it only")
        except OSError:
            os.ftruncate(self._descriptor, end)  # half a record would hide those after it
            raise

    def _rotate(self) -> None:
        if not self._open and os.fstat(self._descriptor).st_size > ROTATE_BYTES:
            os.ftruncate(self._descriptor, 0)
            self._append(_origin_of(self.path))


def _origin_of(path: Path) -> Origin:
    return Origin(str(path.resolve()), path.stat().st_ino)


def _set_foreign_aside(path: Path) -> None:
    """Renames a journal that was begun as another file. Raises OSError."""
    try:
        past, _, origin = _read(path.read_bytes())
    except FileNotFoundError:
        return
    if origin is None or origin == _origin_of(path):
        return
    aside = path.with_name(f"{path.name}.copied-{time.time_ns()}")
    path.rename(aside)
    cut_off = [one for one in past.values() if one.applied is None]
    files = sorted({step.path for one in cut_off for step in one.entry.steps})
    logger.warning(
        "The journal of edits %s is a copy of %s, or was moved; it was set aside as %s.%s",
        path,
        origin.path,
        aside.name,
        f" Edits of {', '.join(files)} were under way in it, and are left as they are: the server of {origin.path} "
        "mends them."
        if files
        else "",
    )


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=8).digest()


def _read(data: bytes) -> tuple[dict[str, Past], int, Origin | None]:
    """Operations by id, the length of what can be read, and where the journal was begun."""
    decoder = msgspec.msgpack.Decoder(Entry | End | Origin)
    past: dict[str, Past] = {}
    origin: Origin | None = None
    place = 0
    while place + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, place)
        payload = data[place + _HEAD.size : place + _HEAD.size + length]
        if len(payload) < length or _checksum(payload) != checksum:
            break
        try:
            record = decoder.decode(payload)
        except msgspec.DecodeError:
            break
        if isinstance(record, Origin):
            origin = record
        elif isinstance(record, Entry):
            past[record.id] = Past(record, None)
        elif record.id in past:
            past[record.id] = Past(past[record.id].entry, record.applied)
        place += _HEAD.size + length
    return past, place, origin
