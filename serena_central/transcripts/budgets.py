"""Budgets: what a day may cost, over all projects and in single ones. They warn; nothing of a client is stopped."""

from collections.abc import Mapping
from pathlib import PurePath

import msgspec

from serena_central.transcripts.reports import UsageRow

ALL = "day"
"""The key of the budget of all projects together."""


class Overrun(msgspec.Struct, frozen=True, kw_only=True):
    """A budget of a day that is used up. `project` is None for that of all projects together."""

    project: str | None
    spent: float
    budget: float

    def __str__(self) -> str:
        what = "All projects" if self.project is None else self.project
        return f"{what}: ${self.spent:.2f} spent today, above the budget of ${self.budget:.2f}."


def overruns(budgets: Mapping[str, float], today: UsageRow, projects: list[UsageRow]) -> list[Overrun]:
    """The budgets that today's usage exceeds. `projects` are the rows of today by project."""
    found: list[Overrun] = []
    for name, budget in budgets.items():
        if name == ALL:
            spent = today.cost
        else:
            spent = sum(row.cost for row in projects if name in (row.key, PurePath(row.key).name))
        if spent > budget:
            found.append(Overrun(project=None if name == ALL else name, spent=spent, budget=budget))
    return found
