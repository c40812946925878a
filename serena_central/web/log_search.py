"""Reads and searches the end of the server's log file, in either of its forms (core/logs.py). Blocks."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.masking import masked
from serena_central.web.views import has_words

READ_BYTES = 1_000_000
"""Of the newest lines: some thousand of them, and ten milliseconds. The file is set aside at ten times as much."""

LEVELS = ("debug", "info", "warning", "error", "critical")

_RECORD = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Z]+) ([\w.]+): ")


class LogRecord(msgspec.Struct, frozen=True):
    """A record with the lines of its trace. `at` is Unix seconds; secrets in `text` are masked."""

    at: float
    level: str
    logger: str
    text: str


class LogFound(msgspec.Struct, frozen=True):
    """Records that match, the newest first, and when the oldest record was written that was looked at: None where
    there is none. `more`: older ones were not looked at, or not all that match are here."""

    records: list[LogRecord]
    searched_to: float | None
    more: bool


class _JsonRecord(msgspec.Struct):
    time: str
    level: str
    logger: str
    message: str
    trace: str = ""
    action: str = ""
    session: str = ""
    project: str = ""
    server: str = ""


def search_log(
    file: Path,
    *,
    words: str = "",
    session: str = "",
    project: str = "",
    level: str = "",
    since: float = 0.0,
    until: float | None = None,
    limit: int,
) -> LogFound:
    """Searches the newest records of the file and of the one that was set aside before it.

    `words` all stand in the record, in any case; `session` and `project` do as they are written; `level` is the least.
    """
    least = LEVELS.index(level) if level in LEVELS else 0
    found: list[LogRecord] = []
    oldest: float | None = None
    text, cut = _end_of(file)
    for record in _newest_first(text.splitlines()):
        oldest = record.at
        if record.at < since:
            return LogFound(found, oldest, more=False)
        if (until is not None and record.at >= until) or LEVELS.index(record.level) < least:
            continue
        if session in record.text and project in record.text and has_words(words, record.logger, record.text):
            if len(found) == limit:
                return LogFound(found, oldest, more=True)
            found.append(record)
    return LogFound(found, oldest, more=cut)


def _end_of(file: Path) -> tuple[str, bool]:
    """The newest lines, the oldest first, and whether there are older ones."""
    end, cut = _last_bytes(file, READ_BYTES)
    if not cut and len(end) < READ_BYTES:
        before, cut = _last_bytes(file.with_name(f"{file.name}.1"), READ_BYTES - len(end))
        end = before + end
    if cut:
        end = end[end.find(b"\n") + 1 :]
    return end.decode(errors="replace"), cut


def _last_bytes(file: Path, most: int) -> tuple[bytes, bool]:
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(size - most, 0))
            return opened.read(most), size > most
    except OSError:
        return b"", False


def _newest_first(lines: Iterable[str]) -> Iterator[LogRecord]:
    behind: list[str] = []
    for line in reversed(list(lines)):
        record = _record(line)
        if record is None:
            behind.append(line)  # of the trace of a record that comes next
            continue
        text = "\n".join((record.text, *reversed(behind)))
        yield msgspec.structs.replace(record, text=masked(text))
        behind = []


def _record(line: str) -> LogRecord | None:
    """The record that begins with this line; None for a line of a trace."""
    if found := _RECORD.match(line):
        level = found[2].lower()
        return LogRecord(_at(found[1]), level if level in LEVELS else "info", found[3], line[found.end() :])
    if not line.startswith('{"time": "'):
        return None
    try:
        one = from_json(line, _JsonRecord)
        at = _at(one.time)
    except (msgspec.DecodeError, ValueError):
        return None
    keys = " ".join(
        f"{key}={value}" for key in ("action", "session", "project", "server") if (value := getattr(one, key))
    )
    text = one.message + (f" [{keys}]" if keys else "") + (f"\n{one.trace}" if one.trace else "")
    return LogRecord(at, one.level if one.level in LEVELS else "info", one.logger, text)


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
