"""Appends records to the transcript of one project: a file for each day (UTC), one write for each line.

Lines that were written are never changed. A line that a crash or a full disk left half written is ended by a newline
before the next one; readers skip it. Secrets are masked on the way.
"""

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from serena_central.core.encoding import lossy_json
from serena_central.core.errors import StoreError
from serena_central.core.masking import masked, masked_value
from serena_central.files.atomic import write_whole
from serena_central.transcripts.own_files import root_of
from serena_central.transcripts.records import (
    AnyRecord,
    AssistantMessage,
    ToolCall,
    ToolResult,
    UserMessage,
    project_hash,
)

LOCK = ".writer"


class TranscriptWriter:
    """The one writer of a project's transcript below `folder`. Blocks; for one thread at a time.

    Raises: StoreError where another process writes it, OSError."""

    def __init__(self, folder: Path, root: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.folder = folder / project_hash(root)
        self._clock = clock
        self._day: str = ""
        self._file: int | None = None
        self._torn = False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StoreError(f"Another process writes the transcript in {self.folder}.") from error
        try:
            self._note_root(root)
        except BaseException:  # on a full disk, for instance: the next writer is not to be refused for this one's lock
            os.close(self._lock)
            raise

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        os.close(self._lock)

    def append(self, record: AnyRecord) -> None:
        """Writes one line.

        Raises:
            OSError: what was written of the line then counts for nothing.
        """
        line = lossy_json(without_secrets(record), str) + b"\n"
        file = self._file_of(self._clock().astimezone(UTC).date().isoformat())
        content = b"\n" + line if self._torn else line
        written = os.write(file, content)
        self._torn = written < len(content)
        if self._torn:
            raise OSError(f"only {written} of {len(content)} bytes were written to {self.folder / self._day}.jsonl")

    def _file_of(self, day: str) -> int:
        path = self.folder / f"{day}.jsonl"
        if self._file is None or day != self._day or not _is_at(self._file, path):
            if self._file is not None:
                os.close(self._file)
                self._file = None
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(path, flags, 0o600)
            self._day = day
            size = os.fstat(self._file).st_size
            self._torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        return self._file

    def _note_root(self, root: str) -> None:
        """The folder's name cannot be turned back: the path stands beside the days."""
        if root_of(self.folder) is None:
            write_whole(self.folder / "project.json", msgspec.json.encode({"root": root}))


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one at its path: nobody finds what is written to one that was deleted."""
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(file))


def without_secrets(record: AnyRecord) -> AnyRecord:
    """The record with what people and tools wrote masked."""
    match record:
        case UserMessage():
            changed = {"content": masked(record.content), "attachments": masked_value(record.attachments)}
        case AssistantMessage():
            changed = {"content": masked(record.content), "tool_calls": masked_value(record.tool_calls)}
            changed["cost"] = round(record.cost, 4)
        case ToolCall():
            changed = {"tool_input": masked_value(record.tool_input)}
        case ToolResult():
            changed = {"output": masked_value(record.output)}
    return msgspec.structs.replace(record, **changed)
