from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from serena_central.core.errors import InvalidArguments, StoreError
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.budgets import Overrun, check, overruns
from serena_central.transcripts.counting import update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import Block, Report, UsageRow, report, upstream_of
from serena_central.transcripts.roots import roots_of
from tests.support.transcripts import claude, codex, codex_meta, codex_turn, written

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def reported(home: Path, by: str, times: list[str], now: datetime = NOW, **more: object) -> Report:
    rows = [claude(f"m{n}", request=f"req_{n}", at=at, output=1000, session=f"s-{n}") for n, at in enumerate(times)]
    written(home / ".claude" / "projects" / "p" / "s.jsonl", *rows)
    with UsageStore(home / "usage.db") as store:
        update(store, roots_of(home, {}), Prices())
        return report(store, by, now=now, **more)  # type: ignore[arg-type]


TIMES = ["2026-10-25T23:50:00Z", "2026-10-31T22:40:00Z", "2026-11-01T10:00:00Z"]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("day", ["2026-10-25", "2026-10-31", "2026-11-01"]),
        ("week", ["2026-10-19", "2026-10-26"]),
        ("month", ["2026-10", "2026-11"]),
        ("client", ["claude-code"]),
    ],
)
def test_usage_is_grouped(tmp_path: Path, by: str, keys: list[str]) -> None:
    assert [row.key for row in reported(tmp_path, by, TIMES, zone=UTC).rows] == keys


def test_days_are_those_of_the_time_zone(tmp_path: Path) -> None:
    """Of every zone, those with half hours included."""
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    keys = [
        row.key
        for row in reported(tmp_path, "day", ["2026-10-31T18:14:59Z", "2026-10-31T18:15:00Z"], zone=kathmandu).rows
    ]
    assert keys == ["2026-10-31", "2026-11-01"]


def test_only_what_came_since_a_time(tmp_path: Path) -> None:
    found = reported(tmp_path, "day", TIMES, zone=UTC, since=datetime(2026, 11, 1, tzinfo=UTC))
    assert (found.total.requests, [row.key for row in found.rows]) == (1, ["2026-11-01"])


def test_a_grouping_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="upstream"):
        reported(tmp_path, "colour", TIMES)


def blocks_of(found: Report) -> list[Block]:
    return [row for row in found.rows if isinstance(row, Block)]


def test_a_block_begins_at_the_full_hour_and_lasts_five(tmp_path: Path) -> None:
    times = ["2026-11-01T01:20:00Z", "2026-11-01T05:59:59Z", "2026-11-01T06:00:00Z", "2026-11-01T11:30:00Z"]
    found = blocks_of(reported(tmp_path, "block", times))
    assert [(one.key, one.requests) for one in found] == [
        ("2026-11-01T01:00Z", 2),
        ("2026-11-01T06:00Z", 1),
        ("2026-11-01T11:00Z", 1),
    ]
    assert [one.running for one in found] == [False, False, True]


def test_what_a_wrong_clock_wrote_into_the_future_is_neither_of_today_nor_of_the_running_block(tmp_path: Path) -> None:
    times = ["2026-11-01T11:20:00Z", "2026-11-01T11:50:00Z", "2099-01-01T00:00:00Z"]
    found = blocks_of(reported(tmp_path, "block", times))
    assert [(one.key, one.running) for one in found] == [("2026-11-01T11:00Z", True), ("2099-01-01T00:00Z", False)]
    midnight = NOW.replace(hour=0)
    for by in ("day", "project", "block", "model"):
        assert reported(tmp_path, by, [], since=midnight).total.requests == 2, by
    assert reported(tmp_path, "day", []).total.requests == 3
    with UsageStore(tmp_path / "usage.db") as store:
        [project] = report(store, "project", now=NOW).rows
        spent = report(store, "project", since=midnight, now=NOW).total.cost
        assert check(store, {"day": spent * 2}, project.key, now=NOW, zone=UTC).state == "allowed"


def test_a_block_does_not_depend_on_when_looking_begins(tmp_path: Path) -> None:
    times = [f"2026-11-01T{hour:02}:20:00Z" for hour in range(14)]
    now = datetime(2026, 11, 1, 13, 30, tzinfo=UTC)
    found = reported(tmp_path, "block", times, now, since=now - timedelta(hours=12))
    assert [(one.key, one.requests, one.running) for one in blocks_of(found)] == [
        ("2026-11-01T00:00Z", 5, False),
        ("2026-11-01T05:00Z", 5, False),
        ("2026-11-01T10:00Z", 4, True),
    ]
    assert found.total.requests == 14
    late = reported(tmp_path, "block", times, now, since=now - timedelta(hours=2))
    assert [(one.key, one.requests) for one in blocks_of(late)] == [("2026-11-01T10:00Z", 4)]
    assert late.total.requests == 4


def test_only_requests_to_claude_are_in_blocks(tmp_path: Path) -> None:
    rollout = [codex_meta("c-1"), codex_turn(), codex((100, 0, 10), at="2026-11-01T10:00:00.000Z")]
    written(tmp_path / ".codex" / "sessions" / "rollout-c-1.jsonl", *rollout)
    found = reported(tmp_path, "block", ["2026-11-01T11:00:00Z"])
    assert [one.key for one in blocks_of(found)] == ["2026-11-01T11:00Z"]
    assert (found.total.requests, found.total.cost) == (1, found.rows[0].cost)
    assert reported(tmp_path, "day", []).total.requests == 2


def test_the_running_block_has_a_forecast(tmp_path: Path) -> None:
    [block] = blocks_of(reported(tmp_path, "block", ["2026-11-01T11:00:00Z", "2026-11-01T11:30:00Z"]))
    assert block.cost_per_hour == pytest.approx(block.cost)
    assert block.forecast == pytest.approx(block.cost * 5)


def test_upstreams_are_known_by_the_names_of_their_tools() -> None:
    assert [upstream_of(name) for name in ("mcp__github__search", "mcp_serena_find", "Bash", "mcp__x")] == [
        "github",
        "serena",
        "(client's own tools)",
        "(client's own tools)",
    ]
    assert [upstream_of(name, "messages") for name in ("github__search", "find_symbol")] == ["github", "serena-central"]


def test_a_budget_that_is_used_up_is_named() -> None:
    today, projects = UsageRow(key="total", cost=12), [UsageRow(key="/home/u/shop", cost=9), UsageRow(key="/x", cost=3)]
    found = overruns({"day": 11, "shop": 8, "/x": 3, "other": 1}, today, projects)
    assert found == [Overrun(project=None, spent=12, budget=11), Overrun(project="shop", spent=9, budget=8)]


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "usage.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer"):
        UsageStore(tmp_path / "usage.db")


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "usage.db").write_bytes(b"nothing of SQLite's" * 100)
    with pytest.raises(StoreError, match=r"usage\.db is not usable"):
        UsageStore(tmp_path / "usage.db")
