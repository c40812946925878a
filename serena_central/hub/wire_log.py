"""The wire log of an upstream: what is sent and received, and its stderr; rotated, secrets masked, long lines cut."""

import logging
import time
from collections.abc import Iterable
from logging.handlers import RotatingFileHandler
from pathlib import Path

from serena_central.core.places import wire_log_name
from serena_central.hub.masks import Masks

logger = logging.getLogger(__name__)

LOG_BYTES, LOG_FILES = 2_000_000, 2
"""A log is set aside at this size; this many older ones are kept."""

LINE_CHARS = 2000
"""Shown of one message."""


class WireLog:
    """Belongs to one run of an upstream. Writing never raises; a line takes some 20 µs."""

    def __init__(self, folders: Iterable[Path], server: str, masks: Masks) -> None:
        """Writes to a file of the server's name in each folder that is there."""
        self._handlers: list[RotatingFileHandler] = []
        for folder in folders:
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                handler = RotatingFileHandler(
                    folder / wire_log_name(server),
                    maxBytes=LOG_BYTES,
                    backupCount=LOG_FILES,
                    encoding="utf-8",
                    errors="backslashreplace",
                    delay=True,
                )
            except OSError as error:
                logger.warning("no wire log for %s in %s: %s", server, folder, error)
                continue
            handler.handleError = _dropped  # type: ignore[method-assign]
            self._handlers.append(handler)
        self._masks = masks

    def sent(self, message: str) -> None:
        self._write("→", message)

    def received(self, message: str) -> None:
        self._write("←", message)

    def stderr(self, line: str) -> None:
        self._write("!", line)

    def note(self, message: str) -> None:
        self._write("·", message)

    def _write(self, mark: str, message: str) -> None:
        if not self._handlers:
            return
        if len(message) > LINE_CHARS:
            # A secret that is cut in two would not be found.
            message = self._masks.for_people(message[: 2 * LINE_CHARS])[:LINE_CHARS] + f" … {len(message)} characters"
        else:
            message = self._masks.for_people(message)
        moment = time.time()
        line = (
            f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment))}.{int(moment % 1 * 1000):03d}Z {mark} {message}"
        )
        record = logging.LogRecord("wire", logging.INFO, "", 0, line.replace("\n", "\\n"), None, None)
        for handler in self._handlers:
            handler.handle(record)

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()


def _dropped(_record: logging.LogRecord) -> None:
    """A disk that is full costs the line, not the call."""
