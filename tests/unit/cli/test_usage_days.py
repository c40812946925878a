"""Days of `serena-central usage` and of budgets where the clocks change: each begins at its own midnight."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from serena_central.cli.usage import start_of
from serena_central.transcripts.budgets import midnight

CHANGE = datetime(2026, 10, 25, 12, tzinfo=UTC)
"""In Berlin this day began by summer time and ends by winter time."""

SUMMER_MIDNIGHT = datetime(2026, 10, 24, 22, tzinfo=UTC)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("zone", [None, ZoneInfo("Europe/Berlin")])
@pytest.mark.usefixtures("berlin")
def test_a_day_begins_by_the_clock_of_its_beginning(zone: ZoneInfo | None) -> None:
    assert midnight(CHANGE, zone) == SUMMER_MIDNIGHT
    assert midnight(datetime(2026, 10, 25, 22, 59, tzinfo=UTC), zone) == SUMMER_MIDNIGHT
    assert midnight(datetime(2026, 10, 25, 23, tzinfo=UTC), zone) == datetime(2026, 10, 25, 23, tzinfo=UTC)
    assert midnight(datetime(2026, 3, 29, 12, tzinfo=UTC), zone) == datetime(2026, 3, 28, 23, tzinfo=UTC)


@pytest.mark.usefixtures("berlin")
def test_the_last_days_begin_where_the_day_does_that_is_named() -> None:
    now = datetime(2026, 10, 28, 12, tzinfo=UTC)
    assert start_of("4d", now) == start_of("2026-10-25", now) == SUMMER_MIDNIGHT
    assert start_of("1d", now) == datetime(2026, 10, 27, 23, tzinfo=UTC)
