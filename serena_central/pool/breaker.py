"""The circuit breaker of one server key, and the delay between restarts. Pure: time comes in by a clock.

Guards starts alone; what already runs may be used. A failure is a start that failed, a crash or a hang; only a call
that was answered is a success, since a server that crashes on its first request starts very well. Starts that failed
weigh more than crashes, which one question may cause again and again.
"""

from collections.abc import Callable
from enum import StrEnum

from serena_central.config.policies import PoolPolicy
from serena_central.core.words import counted
from serena_central.standalone.backoff import backoff_s

MENDED = "it is restarted (restart_language_server or the dashboard) or its configuration changes"
"""What ends that a server was given up."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """One probe has been let through, and was not answered yet."""
    GIVEN_UP = "given_up"
    """Nothing is tried before somebody closes it."""


REFUSING = frozenset({BreakerState.OPEN, BreakerState.GIVEN_UP})


class CircuitBreaker:
    """Counts failures in a row and refuses starts for a while after too many. `on_change` is called with each new
    state."""

    def __init__(
        self, policy: PoolPolicy, *, clock: Callable[[], float], on_change: Callable[[BreakerState, str], None]
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._on_change = on_change
        self._failed_at = 0.0
        self._starts_failed = 0
        self._opened = 0
        """Both in a row."""
        self.state = BreakerState.CLOSED
        self.failures = 0
        self.last_failure = ""

    def refusal(self) -> str | None:
        """Why a start is refused now and when to ask again, or None when one may begin (which may be the probe)."""
        refusal = self.refusal_now
        if refusal is None and self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN, "one restart is attempted")
        return refusal

    @property
    def refusal_now(self) -> str | None:
        """As `refusal`, and lets no probe through."""
        failed = f"it failed {counted(self.failures, 'time')} in a row (last: {self.last_failure})"
        if self.state is BreakerState.GIVEN_UP:
            return f"{failed}, and is not started again for this project until {MENDED}"
        left_s = self.open_for_s
        return f"{failed}; the next restart is attempted in {left_s:.0f} s" if left_s > 0 else None

    @property
    def open_for_s(self) -> float:
        """Seconds until a probe may start; 0 unless open."""
        if self.state is not BreakerState.OPEN:
            return 0.0
        return max(0.0, self._failed_at + self._policy.breaker_open_s - self._clock())

    @property
    def restart_delay_s(self) -> float:
        """How long the next start must wait from now on: not at all after one failure, then twice as long each time."""
        if self.failures < 2:
            return 0.0
        policy = self._policy
        delay_s = backoff_s(self.failures - 1, first_s=policy.restart_delay_s, cap_s=policy.restart_delay_cap_s)
        return max(0.0, self._failed_at + delay_s - self._clock())

    def failure(self, what: str, *, at_start: bool = False) -> None:
        """`at_start`: it never became usable."""
        self.failures += 1
        self._starts_failed = self._starts_failed + 1 if at_start else 0
        self.last_failure = what
        self._failed_at = self._clock()
        opens = self.state is BreakerState.HALF_OPEN or self.failures >= self._policy.breaker_failures
        self._opened += opens and self.state is not BreakerState.OPEN
        if max(self._starts_failed, self._opened) >= self._policy.give_up_after:
            self._become(BreakerState.GIVEN_UP, what)
        elif opens:
            self._become(BreakerState.OPEN, what)

    def close(self, why: str = "a call was answered") -> None:
        """On a success, or by hand."""
        self.failures = self._starts_failed = self._opened = 0
        self._become(BreakerState.CLOSED, why)

    def _become(self, state: BreakerState, why: str) -> None:
        if state is not self.state:
            self.state = state
            self._on_change(state, why)
