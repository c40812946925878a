"""Whether this process rests: nobody has asked it anything, and nothing has happened, for a while.

Periodic work then comes together every RESTING_S, and pages are looked through as often: each wake-up of a CPU that
slept costs more than most of that work. Whatever happens ends the rest at once, by `rest.stir`.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

RESTING_S = 60.0
"""Between two wake-ups of a process that rests, in seconds. After a quarter of a minute the CPU's caches are cold: what
takes 3 ms takes 75 then."""

RESTS_AFTER_S = 10.0
"""It rests when so long nothing has happened."""


class Rest:
    """Belongs to the event loop's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.is_busy: Callable[[], bool] = _never
        """Whether something goes on, such as a call: it may take longer than RESTS_AFTER_S without a sign."""
        self._clock = clock
        self._stirred = True
        self._stirred_at = clock()
        self._sleepers: list[Callable[[], None]] = []

    def stir(self) -> None:
        """Something happens: a request, an event, a question to a language server. Costs next to nothing."""
        if not self._stirred:
            self._stirred = True
            for wake in self._sleepers:
                wake()

    @property
    def is_resting(self) -> bool:
        """Looks at the clock; what stirred before now is of this moment."""
        now = self._clock()
        if self._stirred or self.is_busy():
            self._stirred, self._stirred_at = False, now
        return now - self._stirred_at >= RESTS_AFTER_S

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Generator[None]:
        """Calls `wake` when something happens while the block runs."""
        self._sleepers.append(wake)
        try:
            yield
        finally:
            self._sleepers.remove(wake)


def _never() -> bool:
    return False


rest = Rest()
"""Of this process."""
