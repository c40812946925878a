"""Opens files and folders without following a symlink in any part of the path: what a path says is where it leads.

A path that was resolved and found inside a root is still inside when it is used only if no folder on it can become a
link meanwhile. Whatever is read or written in a project is therefore opened here, by its resolved, absolute path; then
whether it lies in the root is a comparison of strings, which nobody can race. The root's own folders are held to that,
too, so that a root that was replaced by a link is refused, and one that was recreated is simply the new one.

By openat2(2) where the kernel has it (Linux 5.6) and no filter forbids it, else part by part, each folder from the one
before. Both answer the same: ELOOP for a symlink, EXDEV for `..` and for a relative path.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from serena_central.standalone.private import share

READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
"""Never waits for a pipe's writer."""

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
"""A folder that is only passed through need not be readable."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

_ENCODING, _ENCODING_ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

_OPENAT2 = 437
"""The system call's number, the same on every architecture that Linux has but Alpha."""
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04

MOST_BYTES = 50_000_000
"""Of a file that is read whole for what a few lines of it say."""

_TRIES = 8
"""How often the kernel is asked again when folders are renamed or mounted while it follows a path (EAGAIN)."""

Opener = Callable[[str], int]
"""Opens the file at a path for reading; returns its descriptor. Raises OSError."""

_Strategy = Callable[[bytes, int, int], int]


def open_file(path: str, flags: int = READ, mode: int = 0) -> int:
    """Opens what lies at a resolved, absolute path.

    Raises:
        OSError: ELOOP where a part is a symlink, EXDEV for a relative path or one with `..`; else as `os.open`.
        ValueError: the path has a NUL.
    """
    raw = path.encode(_ENCODING, _ENCODING_ERRORS)  # a fifth of what os.fsencode takes
    if path[:1] != "/" or b"/.." in raw or b"\0" in raw:
        _check_plain(raw)
    return _strategy()(raw, flags, mode)


def open_following(path: str) -> int:
    """Opens a file for reading, symlinks followed: for what is the user's own or the system's, not a project's."""
    return os.open(path, READ)


def read_following(path: str | Path, max_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file, opened as by `open_following`. Whatever else a repository or another user may have
    put there is refused: a pipe would be waited for, and a device like /dev/zero read for ever.

    Raises:
        OSError: EINVAL where it is not a regular file, EFBIG where it has more bytes than that; else as `os.open`.
    """
    descriptor = open_following(str(path))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", str(path))
    return content


def status_of(path: str) -> os.stat_result:
    """What lies at a resolved, absolute path; a symlink there is described itself. Raises as `open_file`."""
    folder, name = split(path)
    with _passage(folder) as descriptor:
        return os.stat(name or ".", dir_fd=descriptor, follow_symlinks=False)


def resolved(path: str | Path) -> str:
    """A path with its symlinks followed, as far as it is there, for `open_file`.

    Raises:
        OSError: its links keep changing: one that ceases to be a link while it is read makes `realpath` fail.
    """
    for _ in range(_TRIES):
        with suppress(OSError):
            return os.path.realpath(path)
    return os.path.realpath(path)


def split(path: str) -> tuple[str, str]:
    """The folder of an absolute path, and the name in it."""
    folder, _, name = path.rpartition("/")
    return folder or "/", name


class OpenFolder:
    """A folder that is held open: what is done to the names in it happens in this very folder, whatever becomes of its
    path. Names are single parts of a path, and never followed. Blocks; raises OSError."""

    def __init__(self, path: str, descriptor: int) -> None:
        """See `at`."""
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def at(cls, path: str) -> Self:
        """Opens the folder at a resolved, absolute path. Raises as `open_file`."""
        try:
            return cls(path, open_file(path, _FOLDER))
        except PermissionError:  # one that may be entered and not listed
            return cls(path, open_file(path, _PASSAGE))

    @classmethod
    def made(cls, path: str, made: list[str] | None = None) -> Self:
        """As `at`, with the missing folders on the way made as the user would make them; adds the paths of those to
        `made`, the outermost first."""
        try:
            return cls.at(path)
        except FileNotFoundError:
            parent, name = split(path)
        with cls.made(parent, made) as above:
            try:
                above.mkdir(name)
            except FileExistsError:
                return cls.at(path)
            if made is not None:
                made.append(path)
            folder = cls.at(path)
            share(folder.descriptor, above.descriptor, 0o777)
            return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def is_at_its_path(self) -> bool:
        """Whether its path still leads here, and through no symlink."""
        try:
            with _passage(self.path) as descriptor:
                return os.path.samestat(os.fstat(descriptor), os.fstat(self.descriptor))
        except OSError:
            return False

    def open(self, name: str, flags: int = READ, mode: int = 0) -> int:
        return _open_part(self.descriptor, os.fsencode(_single(name)), flags, mode)

    def status(self, name: str) -> os.stat_result:
        return os.stat(_single(name), dir_fd=self.descriptor, follow_symlinks=False)

    def rename(self, name: str, to: "OpenFolder", new_name: str) -> None:
        """Moves a file, in this folder or to another; replaces what has the new name."""
        os.replace(_single(name), _single(new_name), src_dir_fd=self.descriptor, dst_dir_fd=to.descriptor)

    def link(self, name: str, to: "OpenFolder", new_name: str) -> None:
        """Gives a file a second name, in this folder or in another; FileExistsError if that is taken."""
        os.link(
            _single(name),
            _single(new_name),
            src_dir_fd=self.descriptor,
            dst_dir_fd=to.descriptor,
            follow_symlinks=False,
        )

    def unlink(self, name: str) -> None:
        os.unlink(_single(name), dir_fd=self.descriptor)

    def mkdir(self, name: str) -> None:
        os.mkdir(_single(name), dir_fd=self.descriptor)

    def rmdir(self, name: str) -> None:
        os.rmdir(_single(name), dir_fd=self.descriptor)


@contextmanager
def _passage(path: str) -> Generator[int]:
    descriptor = open_file(path, _PASSAGE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _single(name: str) -> str:
    """Raises OSError for what is no name in a folder."""
    if "/" in name or name in ("", ".", ".."):
        raise OSError(errno.EXDEV, "not a name in a folder", name)
    return name


def _check_plain(raw: bytes) -> None:
    if b"\0" in raw:
        raise ValueError("embedded null byte")
    if not raw:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(raw))
    if not raw.startswith(b"/") or b".." in raw.split(b"/"):
        raise OSError(errno.EXDEV, "not a resolved, absolute path", os.fsdecode(raw))


# --- strategies --------------------------------------------------------------------------------------------------


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _strategy() -> _Strategy:
    """What this system can do, asked once."""
    if sys.platform == "linux":
        by_kernel = _by_kernel()
        with suppress(OSError):  # ENOSYS of an old kernel; EPERM of a sandbox that does not know the call
            os.close(by_kernel(b"/", _PASSAGE, 0))
            return by_kernel
    return _by_parts


def _by_kernel() -> _Strategy:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    # Converted once: by `argtypes`, at each call, takes as long as the call itself.
    number, nowhere, size = ctypes.c_long(_OPENAT2), ctypes.c_long(_AT_FDCWD), ctypes.c_size_t(ctypes.sizeof(_How))
    orders: dict[tuple[int, int], tuple[_How, ctypes.c_void_p]] = {}

    def order(flags: int, mode: int) -> tuple[_How, ctypes.c_void_p]:
        how = _How(flags, mode if flags & os.O_CREAT else 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
        return orders.setdefault((flags, mode), (how, ctypes.c_void_p(ctypes.addressof(how))))

    _, reading = order(READ, 0)

    def open_at_once(path: bytes, flags: int, mode: int) -> int:
        how = reading if flags == READ else (orders.get((flags, mode)) or order(flags, mode))[1]
        descriptor: int = syscall(number, nowhere, path, how, size)
        tries = _TRIES
        while descriptor < 0 and (tries := tries - 1):
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                raise OSError(code, os.strerror(code), os.fsdecode(path))
            descriptor = syscall(number, nowhere, path, how, size)
        return descriptor if descriptor >= 0 else _by_parts(path, flags, mode)

    return open_at_once


def _by_parts(path: bytes, flags: int, mode: int) -> int:
    if path.endswith(b"/"):
        flags |= getattr(os, "O_DIRECTORY", 0)
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if not parts:
        return os.open("/", flags, mode)
    here = os.open("/", _PASSAGE)
    try:
        for part in parts[:-1]:
            below = _open_part(here, part, _PASSAGE, 0)
            os.close(here)
            here = below
        return _open_part(here, parts[-1], flags, mode)
    finally:
        os.close(here)


def _open_part(folder: int, name: bytes, flags: int, mode: int) -> int:
    try:
        return os.open(name, flags | _NOFOLLOW, mode, dir_fd=folder)
    except OSError as error:
        # A link that should be a folder is ENOTDIR to some systems, EMLINK to others.
        if error.errno in (errno.ENOTDIR, errno.EMLINK) and is_link(folder, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fsdecode(name)) from error
        raise


def is_link(folder: int, name: str | bytes) -> bool:
    """Whether a name in an open folder is a symlink."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
