"""What a day may cost: whether a task of our own may spend more."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.budgets import BudgetCheck, TaskCost, Verdict, check, midnight, overruns
from serena_central.transcripts.counting import update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import report
from serena_central.transcripts.roots import roots_of
from tests.support.transcripts import claude, written

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def verdict(
    home: Path, budgets: Mapping[str, float], project: str = "/home/u/shop", tasks: Sequence[TaskCost] = ()
) -> Verdict:
    with UsageStore(home / "usage.db") as store:
        update(store, roots_of(home, {}), Prices())
        return check(store, budgets, project, now=NOW, zone=UTC, tasks=tasks)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three dollars were spent today in the shop, one in another project, and one the day before."""
    folder = tmp_path / ".claude" / "projects" / "p"
    rows = [
        claude("m", request="req_1", output=200_000, input=0),
        claude("n", request="req_2", output=66_667, input=0, cwd="/home/u/other", session="s-2"),
        claude("o", request="req_3", output=66_667, input=0, at="2026-10-31T23:59:00.000Z"),
    ]
    written(folder / "s-1.jsonl", *rows)
    return tmp_path


@pytest.mark.parametrize(
    ("budgets", "state"),
    [
        ({}, "allowed"),
        ({"shop": 10}, "allowed"),
        ({"shop": 3.5}, "warn"),
        ({"shop": 3}, "stop"),
        ({"/home/u/shop": 3}, "stop"),
        ({"/home/u/shop/": 3}, "stop"),
        ({"/home/u": 4}, "stop"),
        ({"u": 4}, "stop"),
        ({"/home/u/sho": 0}, "allowed"),
        ({"other": 0}, "allowed"),
        ({"day": 10}, "allowed"),
        ({"day": 4.5}, "warn"),
        ({"day": 4}, "stop"),
        ({"day": 10, "shop": 1}, "stop"),
    ],
)
def test_a_budget_warns_from_four_fifths_and_stops_when_it_is_used_up(
    home: Path, budgets: dict[str, float], state: str
) -> None:
    assert verdict(home, budgets).state == state


@pytest.mark.parametrize(
    ("task", "state"),
    [
        (TaskCost(project="/home/u/shop", session="", cost=7), "stop"),
        (TaskCost(project="/home/u/shop", session="s-1", cost=7), "allowed"),
        (TaskCost(project="/home/u/other", session="", cost=7), "allowed"),
    ],
    ids=["no transcript yet", "its transcript is read", "another project"],
)
def test_what_tasks_have_spent_counts_unless_a_transcript_tells_it(home: Path, task: TaskCost, state: str) -> None:
    assert verdict(home, {"shop": 10}, tasks=[task]).state == state


@pytest.mark.parametrize("budget", ["shop", "/home/u/shop"])
def test_what_sessions_in_folders_of_a_project_spend_counts_for_it(home: Path, budget: str) -> None:
    row = claude("x", request="req_9", session="s-9", output=200_000, input=0, cwd="/home/u/shop/frontend")
    written(home / ".claude" / "projects" / "p" / "s-9.jsonl", row)
    assert verdict(home, {budget: 5}).state == "stop"
    with UsageStore(home / "usage.db") as store:
        today = report(store, "project", since=midnight(NOW, UTC), zone=UTC, now=NOW)
    assert [round(one.spent, 2) for one in overruns({budget: 5}, today.total, today.rows)] == [6.0]


def test_what_a_task_spends_in_a_worktree_counts_for_its_project(home: Path) -> None:
    row = claude("x", request="req_9", session="s-9", output=200_000, input=0, cwd="/home/u/.serena/worktrees/t-1")
    written(home / ".claude" / "projects" / "p" / "s-9.jsonl", row)
    task = TaskCost(project="/home/u/shop", session="s-9", cost=3)
    assert verdict(home, {"shop": 5}).state == "allowed"
    assert verdict(home, {"shop": 5}, tasks=[task]).state == "stop"
    assert verdict(home, {"day": 7.5}, tasks=[task]).state == "warn"


def test_what_is_not_known_is_said(home: Path) -> None:
    written(home / ".claude" / "projects" / "p" / "s-3.jsonl", claude("x", request="req_9", model="homemade"))
    found = verdict(home, {"shop": 10})
    assert found.state == "warn"
    assert found.reasons == ["What 1 request cost in shop is not known."]


def test_the_check_reads_what_was_written_since_the_last_one(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    may = BudgetCheck(tmp_path / "usage.db", lambda: roots_of(tmp_path, {}), Prices(), {"shop": 1})
    assert may("/home/u/shop").state == "allowed"
    now = datetime.now(UTC).isoformat()
    written(tmp_path / ".claude" / "projects" / "p" / "s.jsonl", claude("m", at=now, output=200_000))
    assert may("/home/u/shop").state == "stop"
    assert may("/home/u/other").state == "allowed"


def test_a_transcript_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / os.fsdecode(b"p-\xff")
    folder.mkdir(parents=True)
    found = BudgetCheck(tmp_path / "usage.db", lambda: roots_of(tmp_path, {}), Prices(), {"shop": 1})("/home/u/shop")
    assert found.state == "warn"
    assert "its name is not UTF-8" in found.reasons[0]
