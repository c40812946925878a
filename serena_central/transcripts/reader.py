"""Reads the transcripts that this server wrote, as streams: sessions, the records of one, and what resumes it.

A line that is not JSON is skipped with a warning; where one lacks a required field nothing is resumed. Memory holds one
block and one line, however large the files are.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec

from serena_central.core.decoding import json_decoder
from serena_central.core.errors import SerenaCentralError
from serena_central.transcripts.lines import Lines
from serena_central.transcripts.own_files import day_files, project_folders, root_of
from serena_central.transcripts.records import DECODER, AnyRecord
from serena_central.transcripts.requests import MALFORMED, Dropped


class InvalidTranscript(SerenaCentralError):
    """A line of a session lacks what it must have: the conversation that it is part of cannot be resumed."""


class Skipped(NamedTuple):
    """A line that was left out. `offset` is that of its first byte."""

    file: Path
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"

    @property
    def line(self) -> int:
        """1-based; counted when it is asked for."""
        left, number = self.offset, 1
        with self.file.open("rb") as file:
            while left > 0 and (piece := file.read(min(left, 1_000_000))):
                number += piece.count(b"\n")
                left -= len(piece)
        return number


Warn = Callable[[Skipped], None]


def records(folder: Path, session: UUID | str, warn: Warn) -> Iterator[AnyRecord]:
    """The records of a session of one project's folder, over all its days, in order.

    Raises:
        InvalidTranscript: naming file and line, where a line of the session lacks a required field.
    """
    wanted = str(session).encode()
    for file in day_files(folder):
        for offset, line in _lines(file, (wanted,), warn):
            try:
                record = DECODER.decode(line)
            except msgspec.ValidationError as error:
                if not _is_text(line):  # keys that are not known are passed over undecoded
                    warn(Skipped(file, offset, MALFORMED))
                    continue
                raise InvalidTranscript(str(Skipped(file, offset, str(error)))) from error
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                warn(Skipped(file, offset, MALFORMED))
                continue
            if str(record.session_id) == str(session):
                yield record


def _is_text(line: bytes) -> bool:
    """Whether it is UTF-8, as all JSON is."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def folder_of(transcripts: Path, session: str) -> Path | None:
    """The project folder that holds a session's records."""
    wanted = session.encode()
    for folder in project_folders(transcripts):
        for file in reversed(day_files(folder)):
            if next(_lines(file, (wanted,), _nobody), None) is not None:
                return folder
    return None


class _Head(msgspec.Struct, rename="camel"):
    session_id: str
    timestamp: str


_HEAD = json_decoder(_Head)


class OwnSession(msgspec.Struct, kw_only=True):
    """A session as its transcript has it. Times are ISO 8601."""

    session: str
    project: str
    lines: int
    first_at: str
    last_at: str


def sessions(transcripts: Path) -> list[OwnSession]:
    """All sessions, the latest first."""
    found: dict[str, OwnSession] = {}
    for folder in project_folders(transcripts):
        root = root_of(folder) or ""
        for file in day_files(folder):
            for _, line in _lines(file, (b'"sessionId"',), _nobody):
                try:
                    head = _HEAD.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
                one = found.get(head.session_id)
                if one is None:
                    one = found[head.session_id] = OwnSession(
                        session=head.session_id, project=root, lines=0, first_at=head.timestamp, last_at=head.timestamp
                    )
                one.lines += 1
                one.last_at = max(one.last_at, head.timestamp)
    return sorted(found.values(), key=lambda one: one.last_at, reverse=True)


RESUME = {
    "claude-code": "claude --resume {}",
    "codex": "codex resume {}",
    "gemini": "gemini --resume {}",
    "messages": "serena-central task run --runner messages --resume {} 'Go on.'",
}
"""Client → the command that goes on with one of its own sessions, to be run in the session's project."""


def _lines(file: Path, markers: tuple[bytes, ...], warn: Warn) -> Iterator[tuple[int, bytes]]:
    def drop(one: Dropped) -> None:
        warn(Skipped(file, one.offset, one.reason))

    with file.open("rb", buffering=0) as opened:
        yield from Lines(opened, 0, drop).with_any(markers)


def _nobody(_: Skipped) -> None:
    pass
