"""Pauses double up to their cap, however often something fails."""

from serena_central.config.policies import PoolPolicy
from serena_central.pool.breaker import CircuitBreaker
from serena_central.standalone.backoff import Backoff, backoff_s


def test_pauses_double_up_to_the_cap_and_begin_again_after_a_success() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.next_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert backoff.next_s() == 0.5


def test_no_failure_needs_no_pause_and_a_million_are_no_overflow() -> None:
    assert backoff_s(0, first_s=1.0, cap_s=9.0) == 0.0
    assert backoff_s(1_000_000, first_s=0.25, cap_s=30.0) == 30.0


def test_a_server_that_fails_for_days_still_has_a_pause() -> None:
    breaker = CircuitBreaker(PoolPolicy(), clock=lambda: 0.0, on_change=lambda _state, _why: None)
    breaker.failures = 2000
    assert breaker.restart_delay_s <= PoolPolicy().restart_delay_cap_s
