"""The findings of each session's first analysis of a project, which a later report compares with."""

import time
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

from serena_central.core.lru import Lru

Kind = Literal["broken", "unused"]

MOST = 400
"""Of all sessions: a refactoring takes hours, and asks about a handful of projects."""


class Baseline(NamedTuple):
    """`at` is in Unix seconds. A finding is what stays the same when lines move: it has no line number."""

    at: float
    found: Counter[str]


class Baselines:
    """In memory: after a restart nothing is known, and a report says so."""

    def __init__(self) -> None:
        self._known: Lru[tuple[str, Path, Kind], Baseline] = Lru(MOST)

    def note(self, session: str, root: Path, kind: Kind, found: Counter[str]) -> None:
        """Remembers the first answer about a whole project."""
        if (session, root, kind) not in self._known:
            self._known[session, root, kind] = Baseline(time.time(), found)

    def of(self, session: str, root: Path, kind: Kind) -> Baseline | None:
        return self._known.get((session, root, kind))

    def roots(self, session: str) -> list[Path]:
        """Projects that a session has asked about."""
        return list(dict.fromkeys(root for known, root, _ in self._known if known == session))
