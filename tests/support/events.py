"""Events as the server's parts publish them, with whatever a test wants to be otherwise."""

from typing import Any, ClassVar

from serena_central.core.event_kinds import (
    CallFinished,
    EditApplied,
    ProjectOpened,
    ServerMoved,
    SessionCreated,
    SessionEvent,
)
from serena_central.core.events import Event


class Happened(Event, frozen=True, kw_only=True):
    """A kind that the server does not have."""

    kind: ClassVar[str] = "server.happened"
    number: int = 0


class Ended(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.ended"


def call_finished(**otherwise: Any) -> CallFinished:
    usual = {"call": "c-1", "tool": "find_symbol", "outcome": "ok", "duration_ms": 1.0}
    return CallFinished(**{**usual, **otherwise})


def edit_applied(**otherwise: Any) -> EditApplied:
    usual = {"edit": "e-1", "root": "/src/shop", "tool": "rename_symbol", "files": ["a.py"]}
    return EditApplied(**{**usual, "lines_added": 1, "lines_removed": 1, **otherwise})


def project_opened(**otherwise: Any) -> ProjectOpened:
    return ProjectOpened(**{"project": "shop", "root": "/src/shop", "files": 1, **otherwise})


def server_moved(**otherwise: Any) -> ServerMoved:
    usual = {"server": "ty", "project": "/src/shop", "root": "/src/shop", "run": 1}
    move = {"source": "in_use", "to": "expired", "cause": "crash", "reason": "crash"}
    return ServerMoved(**{**usual, **move, **otherwise})


def session_created(**otherwise: Any) -> SessionCreated:
    return SessionCreated(**{"client": "test", "version": "1", "identified_by": "explicit", **otherwise})
