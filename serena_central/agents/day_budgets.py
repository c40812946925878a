"""The budgets of a day, before a task begins and while it runs: what all tasks may cost (`agents.daily_usd`), and what
all clients and tasks together may (`usage_budgets`).

The latter count what transcripts tell of all clients, and what tasks have cost whose transcripts are on other machines.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial

import anyio.to_thread

from serena_central.core.errors import TaskRefused
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store
from serena_central.transcripts.budgets import BudgetCheck, TaskCost, Verdict, midnight


class DayBudgets:
    """Safe from any task."""

    def __init__(self, store: Store, daily_usd: float | None = None, check: BudgetCheck | None = None) -> None:
        self._store = store
        self._daily_usd = daily_usd
        self._check = check

    async def admit(self, root: str, running: Sequence[TaskRow]) -> Sequence[str]:
        """What a task of a project is warned of that is about to begin, beside the tasks that are `running`.

        Raises:
            TaskRefused: the day's money is spent.
            StoreError
        """
        verdict = await self.verdict(root, running)
        if verdict.state == "stop":
            raise TaskRefused(" ".join(verdict.reasons))
        return verdict.reasons

    async def verdict(self, root: str, running: Sequence[TaskRow]) -> Verdict:
        """Whether a task of a project may begin or go on.

        Raises:
            StoreError
        """
        check = self._check if self._check is not None and self._check.concerns(root) else None
        if check is None and self._daily_usd is None:
            return Verdict(state="allowed")
        await self._store.writer.flush()
        if self._daily_usd is not None:
            spent = sum(one.cost for one in await self._costs(datetime.now(UTC), UTC, running))
            if spent >= self._daily_usd:
                return Verdict(
                    state="stop",
                    reasons=[f"Tasks have cost ${spent:.2f} today (UTC), and agents.daily_usd is {self._daily_usd:g}."],
                )
        if check is None:
            return Verdict(state="allowed")
        tasks = await self._costs(datetime.now(UTC), None, running)
        found = await anyio.to_thread.run_sync(partial(check, root, tasks))
        if found.state == "stop":
            return Verdict(state="stop", reasons=[*found.reasons, "See usage_budgets in the settings."])
        return found

    async def _costs(self, now: datetime, zone: tzinfo | None, running: Sequence[TaskRow]) -> list[TaskCost]:
        """Of the tasks that run, and of those that began on this day (of `zone`, None for the machine's own) and have
        ended: each once, though one that ends meanwhile is among both.

        Raises:
            StoreError
        """
        # A wrong clock may have written times to come, which are of no day before theirs.
        day = midnight(now, zone).timestamp(), midnight(now, zone, days_ago=-1).timestamp()
        ended = await self._store.ask(lambda queries: queries.task_costs(*day))
        known = {
            row.id: TaskCost(project=row.project_root, session=row.resume_id or "", cost=row.cost_usd)
            for row in running
            if row.cost_usd is not None
        }
        for task, project, session, cost in ended:
            known[task] = TaskCost(project=project, session=session, cost=cost)
        return list(known.values())
