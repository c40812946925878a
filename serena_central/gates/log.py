"""`.claude/logs/validation.log`: a JSON line for each run of a hook, in the project that it ran for.

Rotated at 5 MB, one older file is kept. The repository may bring links: none is followed.
"""

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from serena_central.claude_config.locations import FOLDER
from serena_central.core.clock import utc
from serena_central.core.decoding import from_json
from serena_central.core.nofollow import OpenFolder
from serena_central.gates.events import GateEvent, Ran

logger = logging.getLogger(__name__)

FOLDER_OF_LOGS = f"{FOLDER}/logs"
NAME, OLDER = "validation.log", "validation.log.1"
FILES = frozenset(f"{FOLDER_OF_LOGS}/{name}" for name in (NAME, OLDER))
"""Relative to the root."""

LOG_BYTES = 5_000_000
TEXT_CHARS = 500
"""Of what a hook said: the log is for finding out which stage stopped what."""

READ_BYTES = 2_000_000
"""Of the newest lines that are shown."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


class Logged(msgspec.Struct, omit_defaults=True):
    """A line of the log. `time` is ISO 8601, UTC; `text` is the end of what the hook said."""

    time: str
    session: str
    event: str
    tool: str
    hook: str
    outcome: str
    exit_code: int | None
    duration_ms: float
    file: str = ""
    text: str = ""


def line_of(event: GateEvent, ran: Ran, at: float) -> Logged:
    """What is logged of one run. `at` is Unix time."""
    return Logged(
        time=utc(at),
        session=event.session,
        event=event.name,
        tool=event.use.name if event.use else "",
        hook=ran.hook,
        outcome=ran.outcome,
        exit_code=ran.exit_code,
        duration_ms=round(ran.duration_ms, 1),
        file=ran.file,
        text=ran.text[-TEXT_CHARS:],
    )


def append(root: Path, lines: list[Logged]) -> None:
    """Adds lines to the log of a resolved root. Blocks for a moment; a log that can't be written stops nothing."""
    data = "".join(json.dumps(msgspec.to_builtins(line)) + "\n" for line in lines).encode()
    try:
        with OpenFolder.made(f"{root}/{FOLDER_OF_LOGS}") as folder:
            with suppress(FileNotFoundError):
                if folder.status(NAME).st_size + len(data) > LOG_BYTES:
                    folder.rename(NAME, folder, OLDER)
            descriptor = folder.open(NAME, _APPEND, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
    except OSError as error:
        logger.warning("hooks of %s could not be logged: %s", root, error)


def newest(root: Path, limit: int) -> list[Logged]:
    """The newest runs, the newest first. Lines that are not whole, or of another shape, are left out. Blocks for
    a moment."""
    found: list[Logged] = []
    for name in (NAME, OLDER):
        if len(found) >= limit:
            break
        for line in reversed(_lines(root, name)):
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(from_json(line, Logged))
    return found[:limit]


def _lines(root: Path, name: str) -> list[bytes]:
    try:
        with OpenFolder.at(f"{root}/{FOLDER_OF_LOGS}") as folder:
            descriptor = folder.open(name)
    except OSError:
        return []
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - READ_BYTES))
        return file.read(READ_BYTES).splitlines()[1 if size > READ_BYTES else 0 :]
