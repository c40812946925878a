"""The state of a plan that runs or ran, as data.

    plan:  running → waiting (for a person) → running → done | stopped | cancelled
    wave:  pending → running → waiting → done | failed | undone | cancelled

`interrupted` is what a plan is called whose server ended; it is resumed from what is on record.
"""

from enum import StrEnum
from typing import Any

import msgspec


class PlanState(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's approval."""
    DONE = "done"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class WaveState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    UNDONE = "undone"
    CANCELLED = "cancelled"


class TaskRun(msgspec.Struct, kw_only=True):
    """One task of a wave. `state` is its task's, `pending` before it is accepted; `after` are names of tasks that it
    waits for, with the reasons. `verified` is what the server saw of its work."""

    name: str
    task: str = ""
    session: str = ""
    state: str = "pending"
    text: str = ""
    error: str = ""
    targets: list[str] = []
    after: dict[str, str] = {}
    verified: dict[str, Any] = {}
    cost_usd: float | None = None
    undone: list[str] = []
    """Ids of its edits that were undone."""


class CheckRun(msgspec.Struct, kw_only=True):
    """One check after a wave. `state`: pending, waiting, passed, failed."""

    name: str
    state: str = "pending"
    says: str = ""


class WaveRun(msgspec.Struct, kw_only=True):
    """`verified` is what the server saw of the whole wave; `says` why it did not end well; `notes` what is to be
    known beside that."""

    name: str
    state: WaveState = WaveState.PENDING
    transaction: bool = False
    tasks: list[TaskRun] = []
    checks: list[CheckRun] = []
    verified: dict[str, Any] = {}
    undone: list[str] = []
    not_undone: dict[str, str] = {}
    says: str = ""
    notes: list[str] = []
    results_file: str = ""


class PlanView(msgspec.Struct, kw_only=True):
    """A plan as /api, pages and the command line show it. Times are Unix seconds."""

    id: str
    name: str
    state: PlanState
    project_root: str
    file: str
    folder: str
    created_at: float
    ended_at: float | None
    called_by: str
    says: str
    cost_usd: float
    waves: list[WaveRun]
