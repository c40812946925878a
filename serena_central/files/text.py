"""Reading a file as text: encoding, byte-order mark, line ends, content hash, and the way back to bytes.

What is read is kept exactly: `FileText.encode(file_text.text.content)` gives the bytes that were on disk. A byte-order
mark beats the project's encoding. A file without one that is UTF-8 counts as such where the project's encoding is
UTF-16 or UTF-32: those have a NUL byte in each ASCII character, and so in each text of code. Bytes that are invalid in
an encoding that extends ASCII become lone surrogates (`surrogateescape`) and are written back unchanged; `invalid` says
so. This module knows no project and no boundary; it follows no symlink (core/nofollow.py), unless it is given an opener
that does.

Texts that were just read are kept: one call reads the same files for several answers, and the next call again. A file
is opened and its stamp compared each time, so that nothing is older than the call; only reading, decoding and finding
its lines are saved. A file that changed so recently that its mtime may not show a further change is read again.
"""

import codecs
import errno
import os
import stat
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

from serena_central.core.allocator import read_shortly
from serena_central.core.errors import ConfigError, NotInEncoding, PathNotFound, PathRefused
from serena_central.core.lru import Lru
from serena_central.core.nofollow import Opener, open_file
from serena_central.core.text import Text
from serena_central.files.stamp import RACY_NS, Stamp

MAX_BYTES = 20_000_000
"""The largest file that is read as text. The largest sources written or merged for people (sqlite3.c) have 9 MB; a
decoded text may take four times its size in memory, and language servers give up earlier."""

MOST_FILES_BYTES = 1 << 16
"""Nearly every source file is shorter: it is read at once, without a look at its size."""

DEFAULT_ENCODING = "utf-8"

MARK = "\ufeff"
"""A byte-order mark as a character; a text holds it only when the file is rewritten."""

WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
"""How files in UTF-16 and UTF-32 begin: a text's UTF-8 does not stand in them."""

Newline = Literal["\n", "\r\n", "\r"]

_MARKS: tuple[tuple[bytes, str], ...] = (  # UTF-32's begins like UTF-16's: longest first
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARKLESS = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""Codecs that write a mark of their own → the codec for a file that has none."""

_NOT_OPENED = {
    errno.ENXIO: "is a socket or device",
    errno.ELOOP: "is a symlink or below one; pass its target instead",
    errno.EXDEV: "leads out of its folder",
}

_READ_TRIES = 3
"""How often a file that is written to meanwhile is read again before the last reading is taken."""


class FileText(NamedTuple):
    """One reading of one file. `text` has no byte-order mark; `digest` covers the bytes on disk, mark included."""

    text: Text
    encoding: str
    bom: bytes
    newline: Newline
    """The line end that most lines have; `\\n` for a text of one line."""
    invalid: bool
    """Some bytes were not valid in `encoding` and stand in the text as lone surrogates."""
    digest: str
    stamp: Stamp

    def encode(self, content: str) -> bytes:
        """The bytes of `content` in this file's encoding, byte-order mark included.

        Raises:
            UnicodeEncodeError: a character that the encoding does not have.
        """
        return self.bom + content.encode(self.encoding, _error_handler(self.encoding))


def digest_of(data: bytes) -> str:
    """The content hash used everywhere: BLAKE2b, 16 bytes, as 32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def read_text(
    path: Path, *, encoding: str | None = None, max_bytes: int = MAX_BYTES, opener: Opener = open_file
) -> FileText:
    """Reads a file, `encoding` (default UTF-8) being what it has when no byte-order mark tells otherwise.

    Blocks for the disk, and never on a pipe or device.

    Raises:
        PathNotFound: nothing is there.
        PathRefused: no regular file, behind a symlink, unreadable, larger than `max_bytes`, binary, or (NotInEncoding)
            not valid in its encoding, if that cannot carry invalid bytes.
        ConfigError: `encoding` names no text encoding.
    """
    data, stamp = read_bytes(path, max_bytes=max_bytes, opener=opener)
    decoded = decode(data, path, encoding)
    content = decoded.content
    newline = _newline_of(content)
    return FileText(Text(content), decoded.encoding, decoded.bom, newline, decoded.invalid, digest_of(data), stamp)


class Decoded(NamedTuple):
    """The parts of a `FileText` that come from its bytes alone."""

    content: str
    encoding: str
    bom: bytes
    invalid: bool


def decode(data: bytes, path: Path | str, encoding: str | None = None) -> Decoded:
    """Decodes what was read from `path`, which is needed for messages only. Raises what `read_text` raises."""
    codec, bom = _codec_of(data, encoding or DEFAULT_ENCODING)
    body = data[len(bom) :] if bom else data
    if b"\0" in body:
        _check_is_text(body, codec, path)
    content, invalid = _decode(body, codec, path)
    return Decoded(content, codec, bom, invalid)


def read_bytes(path: Path | str, *, max_bytes: int = MAX_BYTES, opener: Opener = open_file) -> tuple[bytes, Stamp]:
    """The bytes of a regular file and the stamp that belongs to them. Raises what `read_text` raises about paths."""
    descriptor = _opened(path, opener)
    try:
        for _ in range(_READ_TRIES - 1):
            data, before, after = _read_once(descriptor, path, max_bytes)
            if before == after and len(data) == after.size:
                return data, after
        data, _, after = _read_once(descriptor, path, max_bytes)
        return data, after
    finally:
        os.close(descriptor)


def read_quickly(path: str, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """The bytes of a regular file for a first look: half of the time that `read_bytes` takes, and nothing told of a
    write meanwhile. None for what that would refuse."""
    try:
        descriptor = open_file(path)
    except OSError:
        return None
    try:
        data = os.read(descriptor, MOST_FILES_BYTES)
        if len(data) < MOST_FILES_BYTES:
            return data
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        return os.pread(descriptor, status.st_size, 0)  # again from the start: nothing large is copied
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_each(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Path → bytes of files below `root`, as `read_quickly` reads them; without those for which that has none. For
    worker threads."""
    for path in paths:
        data = read_quickly(f"{root}/{path}")
        if data is not None:
            read_shortly(len(data))
            yield path, data


def in_utf8(data: bytes, path: str) -> bytes | None:
    """A file's bytes as searches by bytes take them: a text in UTF-16 or UTF-32 in UTF-8, None if it is not valid in
    that; all others as they are."""
    if not data.startswith(WIDE_MARKS):
        return data
    try:
        return decode(data, path).content.encode("utf-8", "surrogatepass")
    except PathRefused:
        return None


def encodings_of(text: str, encoding: str | None) -> list[bytes]:
    """How a text may stand in a file without a byte-order mark: in UTF-8, and in `encoding` if that can hold it."""
    forms = {text.encode("utf-8", "surrogateescape"): None}
    if encoding is not None:
        with suppress(LookupError, UnicodeError):
            name = codecs.lookup(encoding).name
            forms[text.encode(_MARKLESS.get(name, name))] = None
    return list(forms)


def _opened(path: Path | str, opener: Opener) -> int:
    try:
        return opener(str(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PathNotFound(str(path)) from error
    except PermissionError as error:
        raise PathRefused(f"{path} can't be read by this user.") from error
    except OSError as error:
        what = _NOT_OPENED.get(error.errno or 0, f"can't be opened: {error.strerror}")
        raise PathRefused(f"{path} {what}.") from error


def _read_once(descriptor: int, path: Path | str, max_bytes: int) -> tuple[bytes, Stamp, Stamp]:
    """The bytes, and the stamps from before and after: when they differ, somebody wrote meanwhile."""
    status = os.fstat(descriptor)
    _check_kind_and_size(path, status, max_bytes)
    data = os.pread(descriptor, status.st_size + 1, 0)
    return data, Stamp.of(status), Stamp.of(os.fstat(descriptor))


def _check_kind_and_size(path: Path | str, status: os.stat_result, max_bytes: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise PathRefused(f"{path} is a folder; a file is required.")
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{path} is a pipe, socket or device, not a file.")
    if status.st_size > max_bytes:
        raise PathRefused(
            f"{path} has {status.st_size / 1e6:.1f} MB, more than the limit of {max_bytes / 1e6:g} MB for text files."
        )


def _codec_of(data: bytes, encoding: str) -> tuple[str, bytes]:
    """The codec (one that writes no mark by itself) and the mark that the data starts with."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec, mark
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ConfigError("encoding", f"{encoding!r} is not a text encoding that Python supports") from error
    codec = _MARKLESS.get(name, name)
    if not _extends_ascii(codec) and data and b"\0" not in data and _is_utf8(data):
        return DEFAULT_ENCODING, b""
    return codec, b""


def _check_is_text(body: bytes, codec: str, path: Path | str) -> None:
    """Raises PathRefused for bytes with a NUL that is a character by itself: no text holds one."""
    if _extends_ascii(codec):
        raise PathRefused(
            f"{path} is binary (it contains NUL bytes). If it is text in UTF-16, set `encoding: utf-16` in the "
            "project's settings: files in UTF-8 are still read as such."
        )
    if "\0" in body.decode(codec, "replace"):
        raise PathRefused(f"{path} is binary (it contains NUL characters).")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _extends_ascii(codec: str) -> bool:
    return not codec.startswith(("utf-16", "utf-32"))


def _error_handler(codec: str) -> str:
    return "surrogateescape" if _extends_ascii(codec) else "strict"


def _decode(body: bytes, codec: str, path: Path | str) -> tuple[str, bool]:
    """The text, and whether bytes that are invalid in `codec` stand in it as lone surrogates."""
    try:
        return body.decode(codec), False
    except LookupError as error:
        raise ConfigError("encoding", f"{codec!r} is not a text encoding that Python supports") from error
    except UnicodeError as invalid:  # which knows the bytes: kept in a variable, both would wait for the collector
        try:
            return body.decode(codec, _error_handler(codec)), True
        except UnicodeError:  # not every codec can carry every invalid byte
            raise NotInEncoding(str(path), codec, str(invalid)) from invalid


def _newline_of(content: str) -> Newline:
    if "\r" not in content:
        return "\n"
    pairs = content.count("\r\n")
    counts: dict[Newline, int] = {
        "\n": content.count("\n") - pairs,
        "\r\n": pairs,
        "\r": content.count("\r") - pairs,
    }
    return max(counts, key=counts.__getitem__)


MOST_CHARS = 7_000_000
"""Of all texts together: some 10 MB with their lines. The files that hold a frequent name of Django have 6 MB, and are
read for several answers in turn: with less room each of these would read all of them again."""

FEW_FILES = 16
"""Reading so many that are remembered, and have not changed, takes less than a thread takes to begin with it …"""

FEW_CHARS = 300_000
"""… and reading texts of so many characters again, if they have changed, hardly more than a millisecond."""

MOST_HELD_CHARS = 16_000_000
"""While an answer is made, which meets each of its files three times."""


class RecentTexts:
    """May be used in any thread."""

    def __init__(self) -> None:
        self._texts: Lru[tuple[str, str | None], FileText] = Lru(max_size=MOST_HELD_CHARS, size_of=_chars)
        self._lock = threading.Lock()
        self._holding = 0

    @contextmanager
    def holding(self) -> Generator[None]:
        """While the block runs, MOST_HELD_CHARS are remembered."""
        with self._lock:
            self._holding += 1
        try:
            yield
        finally:
            with self._lock:
                self._holding -= 1
                self._shrink()

    def holds(self, path: Path, *, encoding: str | None = None) -> bool:
        """Whether a text of the file is remembered, be it the newest or not."""
        return (str(path), encoding) in self._texts

    def are_at_hand(self, paths: Collection[Path], *, encoding: str | None = None) -> bool:
        """Whether these are few files of which short texts are remembered: they may be read without a thread."""
        if len(paths) > FEW_FILES:
            return False
        with self._lock:
            known = [self._texts.get((str(path), encoding)) for path in paths]
        return None not in known and sum(_chars(one) for one in known if one is not None) <= FEW_CHARS

    def known(self, path: Path, *, encoding: str | None = None, opener: Opener = open_file) -> FileText | None:
        """The text of a file that is remembered and has not changed since; None if it has to be read."""
        key = str(path), encoding
        with self._lock:
            known = self._texts.get(key)
        return known if known is not None and _stamp_of(key[0], opener) == known.stamp else None

    def read(self, path: Path, *, encoding: str | None = None, opener: Opener = open_file) -> FileText:
        """As `read_text`, and raises what that raises."""
        known = self.known(path, encoding=encoding, opener=opener)
        if known is not None:
            return known
        key = str(path), encoding
        read = read_text(path, encoding=encoding, opener=opener)
        with self._lock:
            is_racy = time.time_ns() - max(read.stamp.mtime_ns, read.stamp.ctime_ns) <= RACY_NS
            if is_racy or _chars(read) > MOST_CHARS:
                self._texts.discard(key)
            else:
                self._texts[key] = read
                self._shrink()
        return read

    def forget(self) -> None:
        """Forgets all texts, unless an answer is being made of them."""
        with self._lock:
            if not self._holding:
                self._texts.shrink(0)

    def _shrink(self) -> None:
        if not self._holding:
            self._texts.shrink(MOST_CHARS)


def _chars(read: FileText) -> int:
    return max(1, len(read.text.content))


def _stamp_of(path: str, opener: Opener) -> Stamp | None:
    """Of the file as it is when it is opened: only that asks the server of a network's file system."""
    try:
        descriptor = opener(path)
    except OSError:
        return None
    try:
        return Stamp.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)
