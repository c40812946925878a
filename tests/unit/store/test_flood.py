"""What counts as a flood, by a clock that the tests turn."""

from serena_central.store.writer import Flood


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def comes(flood: Flood, clock: Clock, seconds: float, per_s: int) -> None:
    for _ in range(int(seconds * per_s)):
        clock.now += 1 / per_s
        flood.add()


def test_nothing_a_trickle_and_a_burst_are_no_flood() -> None:
    clock = Clock()
    flood = Flood(500, 2000, clock=clock)
    assert not flood
    comes(flood, clock, 60, per_s=499)
    assert not flood
    for _ in range(1990):
        flood.add()
    assert not flood


def test_a_burst_after_a_burst_is_none_once_the_first_has_run_out() -> None:
    clock = Clock()
    flood = Flood(500, 2000, clock=clock)
    for _ in range(3):
        for _ in range(2000):
            flood.add()
        assert not flood
        clock.now += 4


def test_what_comes_quicker_and_longer_is_a_flood_all_the_while() -> None:
    clock = Clock()
    flood = Flood(500, 2000, clock=clock)
    comes(flood, clock, 1.9, per_s=1500)
    assert not flood
    comes(flood, clock, 0.2, per_s=1500)
    for _ in range(100):
        assert flood
        comes(flood, clock, 0.1, per_s=600)


def test_a_flood_is_over_soon_however_long_it_was() -> None:
    clock = Clock()
    flood = Flood(500, 2000, clock=clock)
    comes(flood, clock, 600, per_s=1000)
    clock.now += 3.9
    assert flood
    clock.now += 0.2
    assert not flood
