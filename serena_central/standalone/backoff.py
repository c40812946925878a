"""Pauses between attempts: each twice as long as the one before, up to a cap."""

MAX_DOUBLINGS = 64
"""Far beyond any cap, and far below what a float can hold: attempts may fail for days."""


def backoff_s(failures: int, *, first_s: float, cap_s: float) -> float:
    """The pause after this many failures in a row; 0 after none."""
    return min(first_s * 2.0 ** min(failures - 1, MAX_DOUBLINGS), cap_s) if failures > 0 else 0.0


class Backoff:
    """Counts failed attempts, and returns how long to wait before the next."""

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self._failures = 0

    def next_s(self) -> float:
        """The pause before the next attempt; each is longer."""
        self._failures += 1
        return backoff_s(self._failures, first_s=self._first_s, cap_s=self._cap_s)

    def reset(self) -> None:
        """An attempt has succeeded."""
        self._failures = 0
