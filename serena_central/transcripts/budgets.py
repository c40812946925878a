"""Budgets: what a day may cost, over all projects and in single ones.

Clients are warned of and never stopped; tasks of our own ask `check` before they begin, and stop where it says so.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Literal

import msgspec

from serena_central.core.words import counted
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.counting import update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import UsageRow, is_of, report
from serena_central.transcripts.roots import Root

ALL = "day"
"""The key of the budget of all projects together."""

WARN_FROM = 0.8
"""The part of a budget from which tasks of our own are warned."""


class Overrun(msgspec.Struct, frozen=True, kw_only=True):
    """A budget of a day that is used up. `project` is None for that of all projects together."""

    project: str | None
    spent: float
    budget: float

    def __str__(self) -> str:
        what = "All projects" if self.project is None else self.project
        return f"{what}: ${self.spent:.2f} spent today, above the budget of ${self.budget:.2f}."


class TaskCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a task of our own has cost today, in dollars. `session` is the client's, by which its transcript is found;
    "" if it is not known yet."""

    project: str
    session: str
    cost: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a task of our own may spend more today, with a sentence for each budget that is short of money and for
    what is not known."""

    state: Literal["allowed", "warn", "stop"]
    reasons: Sequence[str] = ()


def overruns(budgets: Mapping[str, float], today: UsageRow, projects: Sequence[UsageRow]) -> list[Overrun]:
    """The budgets that today's usage exceeds. `projects` are the rows of today by project."""
    found: list[Overrun] = []
    for name, budget in budgets.items():
        spent = _spent(name, today, projects).cost
        if spent > budget:
            found.append(Overrun(project=None if name == ALL else name, spent=spent, budget=budget))
    return found


def check(
    store: UsageStore,
    budgets: Mapping[str, float],
    project: str,
    *,
    now: datetime,
    zone: tzinfo | None = None,
    tasks: Sequence[TaskCost] = (),
) -> Verdict:
    """Whether a task in the project (its root) may begin or go on. Of `tasks`, those count whose session is in no
    transcript; what transcripts tell of the others counts for their projects, though they work in worktrees. Days are
    those of `zone`, None for the machine's own.

    Raises:
        StoreError
    """
    concerned = {name: budgets[name] for name in budgets if name == ALL or is_of(project, name)}
    if not concerned:
        return Verdict(state="allowed")
    projects = {one.session: one.project for one in tasks}
    found = report(store, "project", since=midnight(now, zone), zone=zone, now=now, projects=projects)
    unread = [one for one in tasks if not store.has_session(one.session)]
    reasons: list[str] = []
    used_up = False
    for name, budget in concerned.items():
        row = _spent(name, found.total, found.rows)
        spent = row.cost + sum(one.cost for one in unread if name == ALL or is_of(one.project, name))
        what = "all projects" if name == ALL else name
        if spent >= WARN_FROM * budget:
            reasons.append(f"${spent:.2f} of today's ${budget:.2f} for {what} are spent.")
            used_up = used_up or spent >= budget
        if row.unpriced:
            reasons.append(f"What {counted(row.unpriced, 'request')} cost in {what} is not known.")
    return Verdict(state="stop" if used_up else "warn" if reasons else "allowed", reasons=reasons)


class BudgetCheck:
    """`check` over the transcripts as they are at that moment. Blocks; safe from several threads."""

    def __init__(
        self,
        usage_file: Path,
        roots: Callable[[], Sequence[Root]],
        prices: Prices,
        budgets: Mapping[str, float],
    ) -> None:
        """`roots` are asked for each time: a client's or a first task's folder may be new."""
        self._usage_file = usage_file
        self._roots = roots
        self._prices = prices
        self._budgets = budgets
        self._reading = threading.Lock()

    def concerns(self, project: str) -> bool:
        """Whether there is a budget for what the project (its root) spends."""
        return any(name == ALL or is_of(project, name) for name in self._budgets)

    def __call__(self, project: str, tasks: Sequence[TaskCost] = ()) -> Verdict:
        """Raises: StoreError."""
        if not self.concerns(project):
            return Verdict(state="allowed")
        with self._reading, UsageStore(self._usage_file) as store:
            done = update(store, self._roots(), self._prices)
            found = check(store, self._budgets, project, now=datetime.now(UTC), tasks=tasks)
        if not done.unreadable:
            return found
        what = counted(len(done.unreadable), "file or folder", "files or folders")
        unread = f"{what} of transcripts cannot be read, and the cost in there is not known: {done.unreadable[0]}."
        reasons = [*found.reasons, unread]
        return Verdict(state="warn" if found.state == "allowed" else found.state, reasons=reasons)


def midnight(now: datetime, zone: tzinfo | None = None, *, days_ago: int = 0) -> datetime:
    """When the day began, or one before it, in a time zone, None for the machine's own."""
    day = now.astimezone(zone).date() - timedelta(days=days_ago)
    # Not from `now`: since then the clocks may have changed, and the machine's zone knows but an offset there.
    start = datetime.combine(day, time(), zone)
    return start if zone is not None else start.astimezone()


def _spent(name: str, today: UsageRow, projects: Sequence[UsageRow]) -> UsageRow:
    """What counts for a budget: all of today, or its project with all folders in it."""
    if name == ALL:
        return today
    row = UsageRow(key=name)
    for one in projects:
        if is_of(one.key, name):
            row.cost += one.cost
            row.unpriced += one.unpriced
    return row
