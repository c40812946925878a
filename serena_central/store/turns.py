"""Long work in many transactions that leaves others their turn."""

import threading
import time
from collections.abc import Callable

LONGEST_REST_S = 0.2
"""SQLite looks at a lock that it waits for every tenth of a second at least."""


class Turns:
    """Rests after each part of the work for as long as the part took.

    Who waits for SQLite's lock looks at it from time to time, more and more seldom: who takes it again at once, after
    each transaction, keeps it until all the work is done.
    """

    def __init__(self, ended: threading.Event, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`ended` ends the work, and a rest, too."""
        self._ended = ended
        self._clock = clock
        self._began_at = clock()

    def goes_on(self) -> bool:
        """Rests, and returns whether there is to be another part. Blocks."""
        ended = self._ended.wait(min(self._clock() - self._began_at, LONGEST_REST_S))
        self._began_at = self._clock()
        return not ended
