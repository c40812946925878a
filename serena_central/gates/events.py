"""What happens that hooks may concern, and what came of it. Plain data: identities are words here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from serena_central.gates.matching import ToolUse

SESSION_START, SESSION_END = SESSION_EVENTS = "SessionStart", "SessionEnd"
SUBAGENT_START, SUBAGENT_STOP = "SubagentStart", "SubagentStop"

NO_MORE: Mapping[str, Any] = {}


class GateEvent(NamedTuple):
    """One event in one root. `why` is what matchers of events without a tool are compared with (the source of a
    session's start, the trigger of a compaction, the kind of an agent); `more`: what else its JSON says; `holds`: the
    server holds the files that it is about until its hooks have ended."""

    name: str
    session: str
    root: Path
    use: ToolUse | None = None
    why: str = ""
    summary: str = ""
    client: str = ""
    more: Mapping[str, Any] = NO_MORE
    holds: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What a matcher may call it."""
        return self.use.names if self.use is not None else (self.why,)

    @property
    def blocks(self) -> bool:
        """Whether it comes before something that a hook can stop."""
        return self.name not in ("PostToolUse", SUBAGENT_START, *SESSION_EVENTS)


class CheckEnd(NamedTuple):
    """What a built-in check found: why it stops the tool, "" where it does not; and what it could not look at."""

    problem: str = ""
    note: str = ""


class Ran(NamedTuple):
    """One run of one hook. `outcome`: passed, blocked, halted, failed (it ran, and its failure stops nothing),
    could-not-run, background (it has been started)."""

    hook: str
    event: str
    file: str
    outcome: str
    exit_code: int | None
    duration_ms: float
    text: str = ""
    """What it said of it: stderr, a reason, or why it could not run."""


class Outcome:
    """What all hooks of one event came to."""

    def __init__(self) -> None:
        self.blocked = ""
        """Why the tool must not run; after it ran, what must be fixed."""
        self.asks = ""
        """Why a person has to decide."""
        self.halted = ""
        """Why the session is halted."""
        self.failed = False
        """A hook failed where nothing is left to stop: the rest of its pipeline did not run."""
        self.context: list[str] = []
        """Sentences for the model."""
        self.updated: dict[str, Any] | None = None
        """The tool's input, as hooks changed it."""
        self.ran: list[Ran] = []

    @property
    def stops(self) -> bool:
        """Whether the rest of the pipeline is not to run."""
        return bool(self.blocked or self.halted or self.asks or self.failed)
