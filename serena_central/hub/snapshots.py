"""An upstream as others see it: its state, and the facts that pages, /api and commands show."""

from enum import StrEnum

import msgspec


class UpstreamState(StrEnum):
    STOPPED = "stopped"
    """Not needed yet, or not any more."""
    STARTING = "starting"
    READY = "ready"
    PAUSED = "paused"
    """It crashed; the next start waits for the end of a pause."""
    FAILED = "failed"
    """It is not started again by itself."""


class UpstreamSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream as pages, /api and commands show it. Times are Unix seconds; nothing in it is secret."""

    name: str
    key: str
    scope: str
    """Empty for one that all share; else the project's root or the session's id that it belongs to."""
    kind: str
    target: str
    source: str
    place: str
    sharing: str
    state: UpstreamState
    why: str
    """What it failed of, or what ended its last run."""
    pid: int | None
    started_at: float | None
    last_used_at: float | None
    restarts: int
    """Crashes in a row."""
    calls: int
    errors: int
    users: list[str]
    """Sessions with a call in progress."""
    server: str
    version: str
    protocol: str
    tools: int
    garbage: int
    """Lines on its stdout that were not messages."""
