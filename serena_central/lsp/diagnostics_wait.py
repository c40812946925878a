"""Adapts how long to wait for a server's diagnostics: less after each wait in vain.

Some servers send none at all, or none for some files, and nothing in the protocol tells which. So callers do not wait
the full time every time; anything that the server sends restores it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

FULL_S = 10.0
"""Full wait in seconds; it is halved each time that much was waited without a result."""

LEAST_S = 0.2

MOST_FILES = 1_000
"""Of which it is remembered how long they were waited for."""


class Patience:
    """Of all who wait for one server. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._in_vain_s = 0.0
        """Since the server sent any diagnostics, by all who waited together."""
        self._in_vain_for_s: dict[Path, float] = {}
        """Since it sent some for that file."""
        self._heard_at = 0.0

    def left_s(self, path: Path) -> float:
        """How long diagnostics of a file are worth waiting for."""
        in_vain_s = max(self._in_vain_s, self._in_vain_for_s.get(path, 0.0))
        return max(LEAST_S, round(FULL_S * 0.5 ** (in_vain_s / FULL_S), 1))

    def heard(self, path: Path) -> None:
        """The server has sent diagnostics of a file, whichever they are."""
        self._in_vain_s = 0.0
        self._in_vain_for_s.pop(path, None)
        self._heard_at = anyio.current_time()

    @contextmanager
    def waiting(self, path: Path) -> Generator[None]:
        """Wraps a wait; a cancelled wait counts as one without a result."""
        began_at = anyio.current_time()
        try:
            yield
        except anyio.get_cancelled_exc_class():
            now = anyio.current_time()
            self._in_vain_s += max(0.0, now - max(began_at, self._heard_at))
            while len(self._in_vain_for_s) >= MOST_FILES and path not in self._in_vain_for_s:
                del self._in_vain_for_s[next(iter(self._in_vain_for_s))]
            self._in_vain_for_s[path] = self._in_vain_for_s.get(path, 0.0) + now - began_at
            raise
