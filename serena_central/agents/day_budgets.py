"""The budgets of a day (`usage_budgets`), for tasks: before one begins, and while it runs.

They count what transcripts tell of all clients, and what tasks have cost whose transcripts are not on this machine.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

import anyio.to_thread

from serena_central.store.rows import TaskRow
from serena_central.store.store import Store
from serena_central.transcripts.budgets import BudgetCheck, TaskCost, Verdict, midnight


class DayBudgets:
    """Safe from any task."""

    def __init__(self, check: BudgetCheck, store: Store) -> None:
        self._check = check
        self._store = store

    async def verdict(self, root: str, running: Iterable[TaskRow]) -> Verdict:
        """Whether a task of a project may begin or go on, beside the tasks that are `running`.

        Raises:
            StoreError
        """
        if not self._check.concerns(root):
            return Verdict(state="allowed")
        await self._store.writer.flush()
        since = midnight(datetime.now(UTC)).timestamp()
        ended = await self._store.ask(lambda queries: queries.task_costs_since(since))
        tasks = [TaskCost(project=project, session=session, cost=cost) for project, session, cost in ended]
        tasks += [
            TaskCost(project=row.project_root, session=row.resume_id or "", cost=row.cost_usd)
            for row in running
            if row.cost_usd is not None
        ]
        return await anyio.to_thread.run_sync(partial(self._check, root, tasks))
