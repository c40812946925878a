"""The doctor's checks of the machine: versions, memory, disk, kernel limits, file system clock."""

import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil

from serena_central.cli.checks.check import Check, failed, info, ok, warning
from serena_central.cli.output import megabytes
from serena_central.cli.writable_home import check_writable
from serena_central.core.errors import ConfigError
from serena_central.core.places import Places
from serena_central.pool.budget import machine_memory_bytes

LITTLE_MEMORY_BYTES = 1_000_000_000
"""Two language servers of the usual size."""

LITTLE_DISK_BYTES, NO_DISK_BYTES = 1_000_000_000, 50_000_000

FEW_WATCHES, FEW_INSTANCES = 65_536, 128
"""One watch for each folder of each open project; one instance for each open project."""

FEW_FILES = 1024
"""The server raises its own limit to the hard one, so that this one counts."""

COARSE_CLOCK_S = 0.02
"""A file system whose times are coarser hides changes that follow each other, and files are read again for it."""

ROOM = "free disk space, or set SERENA_CENTRAL_HOME to a folder on a larger disk"

INOTIFY = Path("/proc/sys/fs/inotify")


def check_machine(places: Places) -> Iterator[Check]:
    yield info(
        "version",
        f"serena-central {metadata.version('serena-central')}, Python {sys.version.split()[0]} ({sys.executable})",
    )
    yield info("platform", f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs")
    yield _memory()
    yield _disk(places)
    yield from _inotify()
    yield _open_files()
    yield from _clock(places)


def _memory() -> Check:
    memory, usable = psutil.virtual_memory(), machine_memory_bytes()
    says = f"{megabytes(memory.available)} of {megabytes(memory.total)} available"
    if usable < memory.total:
        says += f", limited to {megabytes(usable)} for this control group"
    if min(memory.available, usable) < LITTLE_MEMORY_BYTES:
        return warning("memory", says, "close other programs, or lower pool.memory_budget_mb")
    return ok("memory", says)


def _disk(places: Places) -> Check:
    there = next(folder for folder in (places.home, *places.home.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    says = f"{megabytes(free)} free for {places.home}"
    if free < NO_DISK_BYTES:
        return failed("disk", says, ROOM)
    return warning("disk", says, ROOM) if free < LITTLE_DISK_BYTES else ok("disk", says)


def _inotify() -> Iterator[Check]:
    for name, few in (("max_user_watches", FEW_WATCHES), ("max_user_instances", FEW_INSTANCES)):
        try:
            limit = int((INOTIFY / name).read_text())
        except (OSError, ValueError):
            continue  # no Linux: trees are compared by stat
        if limit < few:
            advice = f"sudo sysctl fs.inotify.{name}={few * 8}; projects that can't be watched are polled file by file"
            yield warning(f"inotify {name}", str(limit), advice)
        else:
            yield ok(f"inotify {name}", str(limit))


def _open_files() -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return ok("open files", "unlimited")
    if hard < FEW_FILES:
        return warning("open files", f"{hard} at most", f"raise the hard limit to {FEW_FILES * 4} or more (ulimit -Hn)")
    return ok("open files", f"{hard} at most")


def _clock(places: Places) -> Iterator[Check]:
    """How far apart two changes of a file must be to have different times."""
    if not places.home.exists():
        return
    try:
        check_writable(places)
    except ConfigError as error:
        yield failed("writing", error.problem, ROOM)
        return
    with tempfile.TemporaryDirectory(dir=places.home, prefix=".doctor-") as folder:
        file = Path(folder) / "clock"
        file.write_bytes(b"")
        first, until = file.stat().st_mtime_ns, time.monotonic() + COARSE_CLOCK_S * 2
        while (last := file.stat().st_mtime_ns) == first and time.monotonic() < until:
            file.write_bytes(b"x")
    if last == first:
        says = f"file timestamps in {places.home} are coarser than {COARSE_CLOCK_S * 2000:.0f} ms"
        yield warning("clock", says, "use a local disk; on this one, files that just changed are read again")
    else:
        yield ok("clock", f"file timestamps differ after {(last - first) / 1e6:.1f} ms")
