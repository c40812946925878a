"""Which file systems lie where, as the kernel tells without looking at them."""

from collections.abc import Iterable
from pathlib import Path

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
        if kind in _REMOTE or kind.startswith("fuse"):
            return kind
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
