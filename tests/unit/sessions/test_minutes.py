"""Calls by the minute."""

from serena_central.sessions.session import MINUTES_KEPT, Minute, Minutes


def test_calls_are_counted_in_their_minute_and_old_ones_fall_out() -> None:
    minutes = Minutes()
    minutes.add(60.0, 1.0, failed=False)
    minutes.add(119.9, 1.0, failed=True)
    minutes.add(120.0, 1.0, failed=False)
    hour = minutes.last_hour(179.0)
    assert len(hour) == MINUTES_KEPT
    assert [(one.at, one.calls, one.errors) for one in hour[-2:]] == [(60.0, 2, 1), (120.0, 1, 0)]
    assert minutes.last_hour(60.0 * MINUTES_KEPT)[0].calls == 2
    assert minutes.last_hour(60.0 * (MINUTES_KEPT + 1))[0].calls == 1
    minutes.add(60.0 * (MINUTES_KEPT + 1), 1.0, failed=False)
    assert sum(one.calls for one in minutes.last_hour(60.0 * (MINUTES_KEPT + 1))) == 2


def test_a_minute_without_calls_has_no_durations() -> None:
    assert Minutes().last_hour(0.0)[-1] == Minute(0.0, 0, 0, None, None)


def test_percentiles_are_right_to_a_quarter() -> None:
    minutes = Minutes()
    for duration in range(1, 101):
        minutes.add(0.0, float(duration), failed=False)
    newest = minutes.last_hour(0.0)[-1]
    assert newest.p50_ms is not None
    assert newest.p95_ms is not None
    assert 50 <= newest.p50_ms <= 50 * 1.25
    assert 95 <= newest.p95_ms <= 95 * 1.25


def test_a_duration_beyond_all_bounds_counts_as_the_longest() -> None:
    minutes = Minutes()
    minutes.add(0.0, 1e9, failed=False)
    assert (minutes.last_hour(0.0)[-1].p95_ms or 0) > 100_000
