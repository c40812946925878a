"""The circuit breaker opens after failures in a row, lets one probe through, and closes on a success or by hand."""

import pytest

from serena_central.config.policies import PoolPolicy
from serena_central.pool.breaker import BreakerState, CircuitBreaker
from tests.support.pools import FakeClock


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.changes: list[str] = []
        self.breaker = CircuitBreaker(
            PoolPolicy(), clock=self.clock, on_change=lambda state, why: self.changes.append(f"{state}: {why}")
        )

    def fail(self, times: int) -> None:
        for number in range(times):
            self.breaker.failure(f"crash {number + 1}")


def test_five_failures_in_a_row_open_it_and_callers_learn_why_and_until_when() -> None:
    bench = Bench()
    bench.fail(4)
    assert bench.breaker.refusal() is None
    bench.fail(1)
    bench.clock.advance(20)
    assert (
        bench.breaker.refusal() == "it failed 5 times in a row (last: crash 1); the next restart is attempted in 40 s"
    )
    assert bench.breaker.open_for_s == 40
    assert bench.changes == ["open: crash 1"]


def test_a_success_between_failures_starts_the_count_anew() -> None:
    bench = Bench()
    bench.fail(4)
    bench.breaker.close()
    bench.fail(4)
    assert bench.breaker.refusal() is None
    assert bench.changes == []


@pytest.mark.parametrize(("good", "state"), [(True, BreakerState.CLOSED), (False, BreakerState.OPEN)])
def test_after_a_minute_one_probe_decides(good: bool, state: BreakerState) -> None:
    bench = Bench()
    bench.fail(5)
    bench.clock.advance(60)
    assert bench.breaker.refusal() is None
    assert bench.breaker.state is BreakerState.HALF_OPEN
    if good:
        bench.breaker.close()
    else:
        bench.breaker.failure("crash again")
    assert bench.breaker.state is state
    assert (bench.breaker.refusal() is None) is good


@pytest.mark.parametrize("at_start", [True, False])
def test_three_starts_that_failed_or_three_times_open_is_the_end_until_somebody_closes_it(at_start: bool) -> None:
    bench = Bench()
    if at_start:
        for _ in range(3):
            assert bench.breaker.refusal() is None
            bench.breaker.failure("no start", at_start=True)
    else:
        bench.fail(5)
        for _ in range(2):
            bench.clock.advance(60)
            assert bench.breaker.refusal() is None
            bench.fail(1)
    bench.clock.advance(100_000)
    refusal = bench.breaker.refusal()
    assert refusal is not None
    assert "is not started again for this project until" in refusal
    assert (bench.breaker.state, bench.breaker.open_for_s) == (BreakerState.GIVEN_UP, 0)
    bench.breaker.close("mended")
    assert bench.breaker.refusal() is None
    bench.breaker.failure("no start", at_start=True)
    assert bench.breaker.refusal() is None


def test_a_crash_between_starts_that_failed_starts_their_count_anew() -> None:
    bench = Bench()
    for at_start in (True, True, False, True):
        bench.breaker.failure("again", at_start=at_start)
    assert bench.breaker.refusal() is None


def test_a_person_closes_it_at_once() -> None:
    bench = Bench()
    bench.fail(5)
    bench.breaker.close("fixed the settings")
    assert bench.breaker.refusal() is None
    assert bench.breaker.open_for_s == 0
    assert bench.changes[-1] == "closed: fixed the settings"


def test_the_first_restart_waits_not_and_each_further_one_twice_as_long_up_to_a_cap() -> None:
    bench = Bench()
    delays = [bench.breaker.restart_delay_s]
    for _ in range(8):
        bench.fail(1)
        delays.append(bench.breaker.restart_delay_s)
    assert delays == [0, 0, 0.5, 1, 2, 4, 8, 10, 10]
    bench.clock.advance(7)
    assert bench.breaker.restart_delay_s == 3


def test_one_failure_is_told_in_the_singular() -> None:
    bench = Bench()
    bench.breaker = CircuitBreaker(PoolPolicy(breaker_failures=1), clock=bench.clock, on_change=lambda *_: None)
    bench.fail(1)
    assert str(bench.breaker.refusal()).startswith("it failed 1 time in a row")
