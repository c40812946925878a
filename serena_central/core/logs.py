"""The server's log: a file that is rotated, in lines for people or in JSON for programs, and the events in it.

Every record may carry the keys of `KEYS` (as `extra`); both forms show them. Events are logged here and nowhere else:
who publishes one need not log it as well.
"""

import json
import logging
import time
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal, cast

from serena_central.core.event_kinds import CallFinished
from serena_central.core.events import Event, Severity

logger = logging.getLogger(__name__)

LogFormat = Literal["text", "json"]

LOG_BYTES, LOG_FILES = 10_000_000, 3
"""A log file is set aside at this size; this many older ones are kept."""

KEYS = ("action", "session", "project", "server")
"""What a line may be about: an event's kind, and the ids that /api knows."""

_LEVELS = {Severity.INFO: logging.INFO, Severity.WARNING: logging.WARNING, Severity.ERROR: logging.ERROR}


class TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.123Z INFO serena_central.pool: message [session=s-1 project=shop]`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_moment(record)} {record.levelname} {record.name}: {_one_line(record.getMessage())}"
        if keys := _keys_of(record):
            line += f" [{' '.join(f'{key}={_one_line(value)}' for key, value in keys.items())}]"
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


TALKATIVE = ("httpcore2", "httpx2", "mcp.client", "sse_starlette")
"""Loggers of libraries that below warnings log what they send and receive, with URLs and contents."""

SILENT = ("client", "mcp.client.session", "mcp.client.streamable_http")
"""Loggers of the MCP SDK, one by either of its names, that warn of each notification that is not as the protocol says,
and of each event that is no message: a server may send thousands a second, and what it names them is quoted."""


class JsonLines(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `message`, the keys, and `trace` of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_keys_of(record),
        }
        if trace := _trace(self, record):
            said["trace"] = trace
        return json.dumps(said, ensure_ascii=True)  # half a surrogate pair would not go into a UTF-8 file


def log_to(file: Path, level: str, form: LogFormat) -> None:
    """Everything of `level` (a name) and above goes to the file, which is rotated; warnings go to stderr as well."""
    kept = RotatingFileHandler(
        file, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8", errors="backslashreplace", delay=True
    )
    kept.setFormatter(JsonLines() if form == "json" else TextLines())
    shown = logging.StreamHandler()
    shown.setLevel(logging.WARNING)
    shown.setFormatter(TextLines())
    logging.basicConfig(level=level.upper(), handlers=[kept, shown])
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.ERROR)


def log_event(event: Event) -> None:
    """A tap of the bus. Calls of tools are of `debug`, failed ones of `info` level; what is not kept is not logged."""
    if not event.keep:
        return
    level = _LEVELS[event.severity]
    if isinstance(event, CallFinished):
        level = logging.DEBUG if event.severity is Severity.INFO else logging.INFO
    if logger.isEnabledFor(level):
        keys = {"action": event.kind, "session": event.session, "project": event.project, "server": event.server}
        logger.log(level, "%s", event.message or _told(event), extra=keys)


def _told(event: Event) -> str:
    """An event without a sentence is logged by its data; callers' own texts are not logged."""
    told = {key: value for key, value in event.data.items() if key != "semantic_context"}
    return " ".join([event.kind, *(f"{key}={value}" for key, value in told.items())])


def _keys_of(record: logging.LogRecord) -> dict[str, str]:
    return {key: str(value) for key in KEYS if (value := getattr(record, key, None)) is not None}


def _moment(record: logging.LogRecord) -> str:
    """UTC, in milliseconds, as ISO 8601 has it."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    trace = ""
    if record.exc_info and (error := record.exc_info[1]) is not None:
        kinds = {type(one) for one in _chain(error)}
        if any(kind.__module__.startswith("pydantic") for kind in kinds):  # its text quotes what did not fit
            frames = "".join(traceback.format_tb(error.__traceback__))
            named = ", ".join(sorted(kind.__name__ for kind in kinds))
            trace = f"{frames}{named} (what did not fit is not shown)"
        else:
            trace = formatter.formatException(record.exc_info)
    return "\n".join(part for part in (trace, record.stack_info or "") if part)


def _chain(error: BaseException) -> list[BaseException]:
    """An exception with all that its trace would show."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            todo += (one.__cause__, one.__context__)
            if isinstance(one, BaseExceptionGroup):
                todo += cast("BaseExceptionGroup[BaseException]", one).exceptions
    return found


def _one_line(text: str) -> str:
    """Names come from clients: they must not forge lines of their own."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
