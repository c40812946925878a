"""Measures where the time of a call goes: how long it waited for what, and for which language servers.

What runs at the same time for one call counts once: a phase lasts while at least one part of the call is in it. Outside
of a call, measuring does nothing. It costs about a microsecond per part.
"""

import time
from contextvars import ContextVar
from types import TracebackType
from typing import Literal

Phase = Literal["scope", "barrier", "queue", "start", "server", "syntax", "shaping"]
"""Choosing projects; the file system barrier; waiting for one's turn to edit; waiting for a language server to start;
its answers; reading by syntax; fitting the answer."""


class Phases:
    """The phases of one call. Belongs to the event loop's thread."""

    __slots__ = ("_active", "_any", "_any_since", "_since", "servers", "spent_s", "together_s")

    def __init__(self) -> None:
        self._active: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._any = 0
        self._any_since = 0.0
        self.spent_s: dict[str, float] = {}
        """Seconds in each phase that it has been in."""
        self.together_s = 0.0
        """Seconds in any of them."""
        self.servers: set[str] = set()
        """Language servers that were asked."""

    def enter(self, name: str) -> None:
        count = self._active.get(name, 0)
        self._active[name] = count + 1
        if not count:
            now = time.perf_counter()
            self._since[name] = now
            if not self._any:
                self._any_since = now
            self._any += 1

    def leave(self, name: str) -> None:
        count = self._active[name] = self._active[name] - 1
        if not count:
            now = time.perf_counter()
            self.spent_s[name] = self.spent_s.get(name, 0.0) + now - self._since[name]
            self._any -= 1
            if not self._any:
                self.together_s += now - self._any_since


_current: ContextVar[Phases | None] = ContextVar("phases", default=None)


class measuring:  # noqa: N801 - used like a function
    """Measures what the block, and the tasks that it starts, enter."""

    __slots__ = ("_phases", "_token")

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    def __enter__(self) -> None:
        self._token = _current.set(self._phases)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)


class phase:  # noqa: N801 - used like a function
    """While the block runs, the call of this task is in the phase; `server` is the language server that it asks."""

    __slots__ = ("_name", "_phases", "_server")

    def __init__(self, name: Phase, server: str | None = None) -> None:
        self._name = name
        self._server = server
        self._phases: Phases | None = None

    def __enter__(self) -> None:
        phases = self._phases = _current.get()
        if phases is not None:
            phases.enter(self._name)
            if self._server is not None:
                phases.servers.add(self._server)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._phases is not None:
            self._phases.leave(self._name)
