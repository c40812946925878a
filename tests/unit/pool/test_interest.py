"""The idle clock starts when the last session left, or when none of them has called for a while."""

from pathlib import Path

from serena_central.pool.interest import Interests
from tests.support.pools import FakeClock

ROOT = Path("/p")


def test_nobody_ever_was_interested() -> None:
    interests = Interests(session_quiet_s=300, clock=FakeClock())
    assert interests.idle_clock_start(ROOT) is None
    assert interests.attached(ROOT) == 0


def test_an_attached_session_holds_the_clock_for_five_minutes_after_its_last_call() -> None:
    clock = FakeClock()
    interests = Interests(session_quiet_s=300, clock=clock)
    interests.attach(ROOT)
    clock.advance(100)
    interests.touch(ROOT)
    assert interests.idle_clock_start(ROOT) == 1100 + 300


def test_a_call_of_who_is_not_attached_holds_nothing() -> None:
    interests = Interests(session_quiet_s=300, clock=FakeClock())
    interests.touch(ROOT)
    assert interests.idle_clock_start(ROOT) is None


def test_the_clock_starts_when_the_last_of_them_leaves() -> None:
    clock = FakeClock()
    interests = Interests(session_quiet_s=300, clock=clock)
    interests.attach(ROOT)
    interests.attach(ROOT)
    clock.advance(10)
    interests.detach(ROOT)
    assert interests.attached(ROOT) == 1
    clock.advance(10)
    interests.detach(ROOT)
    assert interests.idle_clock_start(ROOT) == 1020


def test_who_left_twice_is_counted_once() -> None:
    interests = Interests(session_quiet_s=300, clock=FakeClock())
    interests.detach(ROOT)
    interests.attach(ROOT)
    assert interests.attached(ROOT) == 1


def test_only_roots_without_sessions_and_servers_are_forgotten() -> None:
    interests = Interests(session_quiet_s=300, clock=FakeClock())
    interests.attach(ROOT)
    interests.forget(())
    assert interests.attached(ROOT) == 1
    interests.detach(ROOT)
    interests.forget({ROOT})
    assert interests.idle_clock_start(ROOT) == 1000
    interests.forget(())
    assert interests.idle_clock_start(ROOT) is None
