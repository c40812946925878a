"""Which file systems lie where, as the kernel tells without looking at them, and which paths lead to such as other
machines serve: whoever looks at one of those whose server is away waits until it is back."""

import errno
import os
import select
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 1.0
"""For a server's answer. Whoever waits for it may be the event loop, once for each time that a server goes away."""

SHELL = "/bin/sh"

MOST_LINKS = 40
"""Symlinks on the way to one file, as for the kernel."""

_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "afs", "ceph", "glusterfs", "lustre")
"""File systems that others change behind this kernel's back; those in user space (`fuse…`) may, too."""


def remote_file_system(paths: Iterable[str]) -> str | None:
    """The type of a file system that does not tell of all changes, if one of `paths` (real ones) lies on such a one."""
    kinds = _mounts()
    for path in paths:
        point = path.rstrip("/")
        while point and point not in kinds:
            point = point.rpartition("/")[0]
        kind = kinds.get(point, "")
        if _is_remote(kind):
            return kind
    return None


def _is_remote(kind: str) -> bool:
    return kind in _REMOTE or kind.startswith("fuse")


class RemoteMounts:
    """Where remote file systems are mounted: read again when the kernel says that something was mounted or unmounted,
    for which it is asked at each look (1 µs). Safe from any thread."""

    def __init__(self) -> None:
        self._poll: select.poll | None = None
        self._points: frozenset[str] = frozenset()
        self._asking = threading.Lock()

    def points(self) -> frozenset[str]:
        if sys.platform != "linux":
            return self._points
        with self._asking:  # two threads that poll one object are an error of Python's
            if self._poll is None or self._poll.poll(0):
                self._read()
            return self._points

    def _read(self) -> None:
        if self._poll is None:
            poll = select.poll()
            try:
                poll.register(os.open("/proc/self/mounts", os.O_RDONLY | os.O_CLOEXEC), select.POLLPRI)
            except OSError:
                return
            self._poll = poll
        self._points = frozenset(point for point, kind in _mounts().items() if kind == "autofs" or _is_remote(kind))


REMOTE = RemoteMounts()
"""Of this process: there is one table of mounts."""


def leads_apart(path: str, root: str, *, within: bool = False) -> bool:
    """Whether an absolute path leads into a remote file system other than the one that `root` (a real path) lies on.
    Such a one is not looked at to tell it, unless it is mounted below the root and `within` says that those are."""
    points = REMOTE.points()
    if not points:
        return False
    folder = f"{root.rstrip('/')}/"
    own = {one for one in points if folder.startswith(f"{one}/") or (within and one.startswith(folder))}
    others = points - own
    return bool(others) and _remote_on_the_way(path, others) is not None


def check_answers(path: str) -> None:
    """Looks for at most `PATIENCE_S` at each remote file system that an absolute path leads into, at most once in that
    time and not at all while an earlier look still waits: so nobody who looks at what is there has to wait for a server
    that is away.

    Raises:
        FileSystemAway: one does not answer.
    """
    points = REMOTE.points()
    while points and (point := _remote_on_the_way(path, points)) is not None:
        if not _answers(point):
            raise FileSystemAway(errno.ETIMEDOUT, "its file system does not answer", point)
        points -= {point}


def is_away(path: str) -> bool:
    """Whether an absolute path leads into a remote file system that does not answer."""
    if not REMOTE.points():  # each call asks several times
        return False
    try:
        check_answers(path)
    except FileSystemAway:
        return True
    return False


class FileSystemAway(OSError):
    """A remote file system does not answer; `filename` is where it is mounted."""


class _Look:
    """One at a mount point, for all who want to know."""

    def __init__(self, point: str) -> None:
        self.began = time.monotonic()
        self.done = threading.Event()
        self._point = point
        threading.Thread(target=self._look, name=f"look at {point}", daemon=True).start()

    def _look(self) -> None:
        with suppress(OSError):
            _look_at(self._point)
        self.done.set()


def _look_at(point: str) -> None:
    """By a process of its own: one that hangs in the kernel can't be killed, and this one must be able to end."""
    import subprocess  # late: hardly anybody has remote file systems

    look = (SHELL, "-c", '[ -e "$0" ]', point)
    silent = subprocess.DEVNULL
    try:
        subprocess.run(look, check=False, stdin=silent, stdout=silent, stderr=silent, cwd="/", env={})
    except OSError:  # no shell, or no more processes
        os.stat(point)  # noqa: PTH116 - strings


_looks: dict[str, _Look] = {}
"""The last one at each mount point."""

_looking = threading.Lock()


def _answers(point: str) -> bool:
    with _looking:
        now, look = time.monotonic(), _looks.get(point)
        if look is None or (look.done.is_set() and now - look.began > PATIENCE_S):
            look = _looks[point] = _Look(point)
    return look.done.wait(max(look.began + PATIENCE_S - now, 0.0))


def _remote_on_the_way(path: str, points: frozenset[str]) -> str | None:
    """The first of some mount points that an absolute path leads to, symlinks followed."""
    real, names, links = "", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name in ("", ".", ".."):
            real = real.rpartition("/")[0] if name == ".." else real
            continue
        here = f"{real}/{name}"
        if here in points:
            return here
        try:
            target = os.readlink(here)  # noqa: PTH115 - strings
        except (OSError, ValueError):  # no link, or no path
            real = here
            continue
        links += 1
        if links > MOST_LINKS:  # the kernel follows no more either
            return None
        real = "" if target.startswith("/") else real
        names.extend(reversed(target.split("/")))
    return None


def mounted_below(root: str) -> frozenset[str]:
    """Where something is mounted below a folder (a real path), relative to it."""
    start = f"{root.rstrip('/')}/"
    return frozenset(point.removeprefix(start) for point in _mounts() if point.startswith(start))


def _mounts() -> dict[str, str]:
    """Where something is mounted → the type of its file system; empty where that can't be told."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    kinds: dict[str, str] = {}
    for mount in mounts:
        _, point, kind, *_ = mount.split(" ")
        kinds[point.replace("\\040", " ").rstrip("/")] = kind
    return kinds
