"""Reads what `logs.py` writes, in either form: the newest records of a log and of its older files, and new ones.

Blocking; a record may have several lines (a trace).
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from serena_central.core.logs import KEYS, LOG_FILES

_TEXT = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) (?P<level>[A-Z]+) (?P<logger>[\w.-]+): (?P<message>.*?)"
    rf"(?: \[(?P<keys>(?:(?:{'|'.join(KEYS)})=[^\n]*)+)\])?"
)
_KEY = re.compile(rf"({'|'.join(KEYS)})=(.*?)(?= (?:{'|'.join(KEYS)})=|$)")


class Record(NamedTuple):
    """One record. `level` is in small letters, `keys` are those of `logs.KEYS` that it has; `lines` is its text."""

    time: str
    level: str
    message: str
    keys: dict[str, str]
    lines: str


def records_in(lines: Iterable[str]) -> Iterator[Record]:
    """Records of lines without their ends. A line that begins none belongs to the one before."""
    begun: Record | None = None
    for line in lines:
        record = _begun_by(line)
        if record is None:
            if begun is not None:
                begun = begun._replace(lines=f"{begun.lines}\n{line}")
            continue
        if begun is not None:
            yield begun
        begun = record
    if begun is not None:
        yield begun


def files_of(file: Path) -> list[Path]:
    """The log and its older files that exist, newest first."""
    older = (file.with_name(f"{file.name}.{number}") for number in range(1, LOG_FILES + 1))
    return [one for one in (file, *older) if one.exists()]


def last_records(file: Path, count: int, wanted: "Wanted") -> list[Record]:
    """The newest `count` records that are wanted, oldest first."""
    found: deque[Record] = deque()
    for one in files_of(file):
        with one.open(encoding="utf-8", errors="replace") as stream:
            here = deque((record for record in records_in(_without_ends(stream)) if wanted.holds(record)), count)
        found.extendleft(record for record, _ in zip(reversed(here), range(count - len(found)), strict=False))
        if len(found) >= count:
            break
    return list(found)


class Wanted(NamedTuple):
    """What to show: of a level and above, about a session; None for all."""

    least: str | None = None
    session: str | None = None

    def holds(self, record: Record) -> bool:
        if self.session is not None and record.keys.get("session") != self.session:
            return False
        return self.least is None or _rank(record.level) >= _rank(self.least)


class Follower:
    """What is added to a log from now on, over its rotations."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rest = ""
        status = file.stat() if file.exists() else None
        self._inode, self._read = (status.st_ino, status.st_size) if status else (0, 0)

    def added(self) -> list[Record]:
        """Whole records that are new since the last time."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return []
        text = ""
        if status.st_ino != self._inode or status.st_size < self._read:
            text = self._end_of_the_one_before(status.st_ino)
            self._inode, self._read = status.st_ino, 0
        with self._file.open("rb") as stream:
            stream.seek(self._read)
            data = stream.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + text + data.decode("utf-8", "replace")).split("\n")
        return list(records_in(lines))

    def _end_of_the_one_before(self, inode: int) -> str:
        """What was written between our last look and the rotation."""
        for one in files_of(self._file):
            status = one.stat()
            if status.st_ino == self._inode != inode:
                with one.open("rb") as stream:
                    stream.seek(self._read)
                    return stream.read().decode("utf-8", "replace")
        return ""


_LEVELS = ("debug", "info", "warning", "error", "critical")


def _rank(level: str) -> int:
    return _LEVELS.index(level) if level in _LEVELS else len(_LEVELS)


def _without_ends(lines: Iterable[str]) -> Iterator[str]:
    return (line.rstrip("\r\n") for line in lines)


def _begun_by(line: str) -> Record | None:
    if line.startswith("{"):
        try:
            said = json.loads(line)
            keys = {key: str(said[key]) for key in KEYS if key in said}
            shown = f"{said['time']} {said['level'].upper()} {said['logger']}: {said['message']}"
            shown += f" [{' '.join(f'{key}={value}' for key, value in keys.items())}]" if keys else ""
            shown += f"\n{said['trace']}" if "trace" in said else ""
            return Record(said["time"], said["level"], said["message"], keys, shown)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
    found = _TEXT.fullmatch(line)
    if found is None:
        return None
    keys = dict(_KEY.findall(found["keys"] or ""))
    return Record(found["time"], found["level"].lower(), found["message"], keys, line)
