"""Sessions that a hook has halted: every call of theirs is answered with the reason until a person resumes them.

Kept in a file of the server's home, so that a restart lifts nothing.
"""

import json
import logging
import time
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.core.decoding import converted
from serena_central.files.atomic import write_whole

logger = logging.getLogger(__name__)

MOST_KEPT = 1000
"""Halted sessions; of more the oldest are resumed."""

MOST_REASON = 2000
"""Characters of a reason."""


class Halt(msgspec.Struct, frozen=True):
    """Why a session is halted, by which hook, in which root, and since when (Unix seconds)."""

    reason: str
    hook: str
    root: str
    at: float


class Halts:
    """Belongs to the event loop's thread. Blocks for a small file when one changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._halted = _read(file)

    def of(self, session: str) -> Halt | None:
        return self._halted.get(session)

    def all(self) -> dict[str, Halt]:
        """By session id, the oldest first."""
        return dict(self._halted)

    def halt(self, session: str, reason: str, hook: str, root: str) -> Halt:
        """Halts a session; one that is halted keeps its first reason."""
        known = self._halted.get(session)
        if known is not None:
            return known
        made = self._halted[session] = Halt(reason[:MOST_REASON], hook, root, time.time())
        while len(self._halted) > MOST_KEPT:
            del self._halted[next(iter(self._halted))]
        self._write()
        return made

    def resume(self, session: str) -> bool:
        """Whether it was halted."""
        was = self._halted.pop(session, None) is not None
        if was:
            self._write()
        return was

    def _write(self) -> None:
        try:
            write_whole(self._file, msgspec.json.encode(self._halted))
        except OSError as error:
            logger.warning("halted sessions could not be saved, and are resumed by a restart: %s", error)


def _read(file: Path) -> dict[str, Halt]:
    try:
        said: Any = json.loads(file.read_text("utf-8"))
        return converted(cast("dict[str, Any]", said), dict[str, Halt])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, msgspec.ValidationError) as error:
        logger.warning("%s can't be read, so that no session counts as halted: %s", file, error)
        return {}
