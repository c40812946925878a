"""A plan that runs."""

import anyio

from serena_central.agents.plans.plan import Plan
from serena_central.agents.plans.run_state import PlanView


class PlanRun:
    """`view` is its state as data; the rest is known to this run of the server alone."""

    def __init__(self, plan: Plan, view: PlanView, *, keep_edits: bool = False) -> None:
        """`keep_edits`: those of an interrupted transaction that can't be undone stay; a person has seen them."""
        self.plan = plan
        self.view = view
        self.kept = view
        """As it was last written: what others are told survives a kill."""
        self.saving = anyio.Lock()
        """Held from encoding `view` until it is written: an older state never replaces a newer one."""
        self.keep_edits = keep_edits
        self.scope = anyio.CancelScope()
        self.over = anyio.Event()
        self.moved = anyio.Event()
        self.decision: anyio.Event | None = None
        """Set while it waits for a person, and when one has decided."""
        self.declined_by = ""
        self.cancelled_by = ""
