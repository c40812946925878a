"""Reads the module version of a Go binary without running it.

The format is that of Go 1.18 and later: debug/buildinfo, "inline" strings behind a magic number.
"""

import mmap
from functools import lru_cache
from pathlib import Path

_MAGIC = b"\xff Go buildinf:"
_ALIGNED = 16
_STRINGS_AT = 32
_INLINE = 2
_FRAME = 16
"""Bytes before and after the module's information, of no meaning here."""


def module_version(program: Path) -> str:
    """`0.23.0` for v0.23.0; "" where the file is no such program, or was built from somebody's own checkout."""
    try:
        status = program.stat()
        return _version(program, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=64)
def _version(program: Path, _mtime_ns: int, _size: int) -> str:
    """Raises: OSError, ValueError."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_MAGIC)
        while at >= 0:
            # Programs that read such information hold the magic number as a constant of theirs, too.
            if at % _ALIGNED == 0 and (version := _version_at(data, at)):
                return version
            at = data.find(_MAGIC, at + 1)
    return ""


def _version_at(data: mmap.mmap, at: int) -> str:
    head = data[at : at + _STRINGS_AT]
    if len(head) < _STRINGS_AT or not head[15] & _INLINE:
        return ""
    _, behind = _string(data, at + _STRINGS_AT)
    information, _ = _string(data, behind)
    for line in information[_FRAME:-_FRAME].decode("utf-8", "replace").splitlines():
        kind, *rest = line.split("\t")
        if kind == "mod" and len(rest) > 1:
            return rest[1].removeprefix("v") if rest[1].startswith("v") else ""
    return ""


def _string(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    """A string behind its length (a varint), and where the next one begins."""
    length = shift = 0
    for offset in range(at, min(at + 5, len(data))):
        byte = data[offset]
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[offset + 1 : offset + 1 + length], offset + 1 + length
    return b"", at
