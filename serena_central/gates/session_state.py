"""What hooks leave of a session, in memory: stages that failed and were not repeated, and reports that it has not seen.

Bounded: of very many sessions the least recently used are forgotten.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serena_central.core.lru import Lru
from serena_central.core.quoting import quoted
from serena_central.gates.checks import Baseline
from serena_central.gates.engine import Matched
from serena_central.gates.events import GateEvent, Outcome
from serena_central.gates.matching import is_rule

MOST_SESSIONS = 1000
MOST_FAILED = 200
"""Stages of one session that failed and were not repeated."""

MOST_NEWS = 50

AFTER = "PostToolUse"


@dataclass
class SessionState:
    """`failed`: (root, hook, file) → what a stage after an edit said when it last failed there."""

    failed: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    baselines: dict[str, Baseline] = field(default_factory=dict[str, Baseline])
    """Root → what was there before the session changed it."""
    passed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(root, hook) of hooks that run once, and have passed."""
    news: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_NEWS))


class SessionStates:
    """By session id."""

    def __init__(self) -> None:
        self._states: Lru[str, SessionState] = Lru(MOST_SESSIONS)

    def of(self, session: str) -> SessionState:
        state = self._states.get(session)
        if state is None:
            state = self._states[session] = SessionState()
        return state

    def due(self, session: str, root: str, matched: Sequence[Matched]) -> list[Matched]:
        """Without hooks that run once and have passed."""
        passed = self.of(session).passed
        return [one for one in matched if not (one.hook.once and (root, one.hook.name) in passed)]

    def ran(self, session: str, root: str, matched: Sequence[Matched], outcome: Outcome) -> None:
        """Hooks have run for an event."""
        once = {one.hook.name for one in matched if one.hook.once}
        for one in outcome.ran:
            if one.outcome == "passed" and one.hook in once:
                self.of(session).passed.add((root, one.hook))
            if one.event == AFTER:
                problem = one.text or "it failed" if one.outcome == "blocked" else ""
                self._stage(session, root, one.hook, one.file, problem)

    def failed_stage(
        self, session: str, root: str, after: Collection[str], event: GateEvent, matched: Sequence[Matched]
    ) -> str:
        """Why hooks must not run: a gate before a certain command is the later part of a pipeline, which stops where a
        stage after an edit failed and has not passed since. "" for nothing. `after`: names of the hooks after tools."""
        use = event.use
        if use is None or use.effect != "run" or not any(is_rule(one.hook.matcher) for one in matched):
            return ""
        for (where, hook, file), problem in self.of(session).failed.items():
            if where == root and hook in after and (not file or Path(file).exists()):
                of_file = f" for {file}" if file else ""
                return f"the hook {hook}, an earlier stage, failed{of_file} and did not pass since: {quoted(problem)}"
        return ""

    def _stage(self, session: str, root: str, hook: str, file: str, problem: str) -> None:
        """A stage ran for a file: what it found, "" for nothing."""
        failed = self.of(session).failed
        failed.pop((root, hook, file), None)
        if problem:
            failed[root, hook, file] = problem
            while len(failed) > MOST_FAILED:
                del failed[next(iter(failed))]

    def tell(self, session: str, text: str) -> None:
        """Comes with the session's next answer."""
        self.of(session).news.append(text)

    def take_news(self, session: str) -> list[str]:
        state = self._states.get(session)
        if state is None or not state.news:
            return []
        told = list(state.news)
        state.news.clear()
        return told
