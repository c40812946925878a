"""What tasks have cost today, while they run and end."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.agents.day_budgets import DayBudgets
from serena_central.core.events import EventBus
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store
from serena_central.transcripts.budgets import BudgetCheck, Verdict
from serena_central.transcripts.pricing import Prices
from tests.support.child import PATIENCE_S

pytestmark = pytest.mark.anyio


def row(task: str, state: str, cost_usd: float, at: float | None = None) -> TaskRow:
    return TaskRow(
        id=task,
        at=time.time() if at is None else at,
        state=state,
        instruction="x",
        agent=None,
        runner="held",
        model=None,
        project_root="/shop",
        session=f"session of {task}",
        cost_usd=cost_usd,
    )


async def test_a_task_that_ends_while_costs_are_read_counts_once_with_all_that_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "db", EventBus())
    check = BudgetCheck(tmp_path / "usage.db", lambda: (), Prices({}), {"day": 8.0})
    budgets = DayBudgets(store, daily_usd=10, check=check)
    ask = store.ask

    async def late(query: Any) -> Any:
        store.writer.put(row("ends", "done", 6.5))
        await store.writer.flush()
        return await ask(query)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            monkeypatch.setattr(store, "ask", late)
            verdict = await budgets.verdict("/shop", [row("ends", "running", 6), row("goes on", "running", 0.5)])
            assert verdict == Verdict(state="warn", reasons=["$7.00 of today's $8.00 for all projects are spent."])
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("daily_usd", "usage_budgets"), [(10.0, {}), (None, {"day": 8.0})])
async def test_a_clock_that_was_ahead_spends_no_other_days_money(
    tmp_path: Path, daily_usd: float | None, usage_budgets: dict[str, float]
) -> None:
    """Tasks that began "in ten days" counted on each day until then, and no task could begin."""
    store = Store(tmp_path / "db", EventBus())
    check = BudgetCheck(tmp_path / "usage.db", lambda: (), Prices({}), usage_budgets)
    budgets = DayBudgets(store, daily_usd=daily_usd, check=check)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            store.writer.put(row("ahead", "done", 20, at=time.time() + 10 * 86_400))
            assert (await budgets.verdict("/shop", [])).state == "allowed"
            store.writer.put(row("now", "done", 20))
            assert (await budgets.verdict("/shop", [])).state == "stop"
            tasks.cancel_scope.cancel()
