"""Tracks which sessions are interested in a root's servers, and since when none is.

Counts attached sessions and their calls as plain numbers; it knows neither sessions nor servers.
"""

from collections.abc import Callable, Container
from pathlib import Path

import msgspec


class _Interest(msgspec.Struct):
    attached: int = 0
    seen_at: float = 0.0  # the last attach, detach or call


class Interests:
    """Per root: how many sessions are attached, and when one of them last called."""

    def __init__(self, *, session_quiet_s: float, clock: Callable[[], float]) -> None:
        self._session_quiet_s = session_quiet_s
        self._clock = clock
        self._roots: dict[Path, _Interest] = {}

    def attach(self, root: Path) -> None:
        self._seen(root).attached += 1

    def detach(self, root: Path) -> None:
        interest = self._seen(root)
        interest.attached = max(0, interest.attached - 1)

    def touch(self, root: Path) -> None:
        """A session has called; of no account unless one is attached."""
        interest = self._roots.get(root)
        if interest is not None and interest.attached:
            interest.seen_at = self._clock()

    def attached(self, root: Path) -> int:
        interest = self._roots.get(root)
        return interest.attached if interest else 0

    def idle_clock_start(self, root: Path) -> float | None:
        """Since when no session is interested; may lie in the future. None if none ever was."""
        interest = self._roots.get(root)
        if interest is None:
            return None
        return interest.seen_at + (self._session_quiet_s if interest.attached else 0.0)

    def forget(self, but: Container[Path]) -> None:
        """Drops roots that nobody is attached to, but those."""
        self._roots = {root: one for root, one in self._roots.items() if one.attached or root in but}

    def _seen(self, root: Path) -> _Interest:
        interest = self._roots.setdefault(root, _Interest())
        interest.seen_at = self._clock()
        return interest
