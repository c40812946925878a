"""What hooks leave of a session, in memory: stages that failed and were not repeated, and reports that it has not seen.

Bounded: of very many sessions the least recently used are forgotten.
"""

from collections import deque
from dataclasses import dataclass, field

from serena_central.core.lru import Lru
from serena_central.gates.checks import Baseline

MOST_SESSIONS = 1000
MOST_FAILED = 200
"""Stages of one session that failed and were not repeated."""

MOST_NEWS = 50


@dataclass
class SessionState:
    """`failed`: (root, hook, file) → what a stage after an edit said when it last failed there."""

    failed: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    baselines: dict[str, Baseline] = field(default_factory=dict[str, Baseline])
    """Root → what was there before the session changed it."""
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

    def stage(self, session: str, root: str, hook: str, file: str, problem: str) -> None:
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
