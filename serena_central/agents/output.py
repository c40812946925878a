"""What tasks wrote while they ran: a file of JSON lines each, bounded, without secrets. The newest lines are in memory
while a task runs."""

import logging
import os
import time
from collections import deque
from pathlib import Path

import msgspec

from serena_central.agents.tasks import OutputLine
from serena_central.core.decoding import from_json
from serena_central.core.masking import masked

logger = logging.getLogger(__name__)

MOST_BYTES = 4_000_000
"""Of one file; what a task writes beyond it is dropped, which the last line says."""

LINE_CHARS = 4000

LINES_KEPT = 200

FILES_KEPT = 1000


class TaskOutput:
    """One task's. Writing is an append of some microseconds."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: deque[OutputLine] = deque(maxlen=LINES_KEPT)
        self._count = 0
        self._bytes = 0

    def add(self, kind: str, text: str) -> None:
        if self._bytes > MOST_BYTES:
            return
        self._count += 1
        shown = masked(text[:LINE_CHARS])
        line = OutputLine(self._count, time.time(), kind, shown if len(text) <= LINE_CHARS else f"{shown}…")
        self.lines.append(line)
        content = msgspec.json.encode(line) + b"\n"
        self._bytes += len(content)
        if self._bytes > MOST_BYTES:
            end = OutputLine(self._count + 1, time.time(), "note", f"Output beyond {MOST_BYTES} bytes is dropped.")
            content += msgspec.json.encode(end) + b"\n"
        try:
            self.file.parent.mkdir(mode=0o700, exist_ok=True)
            with self.file.open("ab") as opened:
                opened.write(content)
        except OSError as error:
            logger.warning("output of a task is not kept: %s", error)


def read_output(file: Path, after: int, limit: int) -> list[OutputLine]:
    """The first lines behind a number. Blocks."""
    found: list[OutputLine] = []
    try:
        with file.open("rb") as opened:
            for content in opened:
                try:
                    line = from_json(content, OutputLine)
                except msgspec.MsgspecError:
                    continue  # cut by the end of a server
                if line.number > after:
                    found.append(line)
                if len(found) >= limit:
                    break
    except FileNotFoundError:
        pass
    return found


def newest_output(file: Path, limit: int) -> list[OutputLine]:
    """The last lines. Blocks."""
    return list(deque(read_output(file, 0, MOST_BYTES), maxlen=limit))


def sweep(folder: Path) -> None:
    """Deletes the files of all but the newest tasks. Blocks."""
    try:
        files = sorted(((one.stat().st_mtime, one.path) for one in os.scandir(folder)), reverse=True)
        for _, path in files[FILES_KEPT:]:
            Path(path).unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("output of old tasks is not deleted: %s", error)
