"""When a provider may be asked again: one for all tasks, since they share its limits.

After a refusal (HTTP 429 or 529) nobody asks before the time that the provider names, or else after growing pauses.
"""

import random

import anyio

from serena_central.standalone.backoff import Backoff

FIRST_S = 1.0
CAP_S = 60.0

MAX_NAMED_S = 300.0
"""Of a time that the provider names."""

SPREAD = 0.25
"""Part of a pause by which tasks come back at different times."""


class ProviderLimits:
    """Belongs to the event loop's thread."""

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._backoff = Backoff(first_s, CAP_S)
        self._not_before = 0.0
        """In the time of `anyio.current_time`."""

    @property
    def pause_s(self) -> float:
        """How long nobody asks from now on."""
        return max(0.0, self._not_before - anyio.current_time())

    async def ready(self) -> None:
        """Waits until it may be asked."""
        while (pause := self.pause_s) > 0:  # noqa: ASYNC110 - a time is waited for, and may be put off meanwhile
            await anyio.sleep(pause * (1 + random.random() * SPREAD))  # noqa: S311 - no secret

    def refused(self, retry_after_s: float | None) -> None:
        """It answered that it takes no more for now."""
        if self.pause_s > 0 and retry_after_s is None:
            return  # one of several that were on their way when the first was refused
        pause = self._backoff.next_s() if retry_after_s is None else min(retry_after_s, MAX_NAMED_S)
        self._not_before = max(self._not_before, anyio.current_time() + pause)

    def accepted(self) -> None:
        """It answered."""
        self._backoff.reset()
