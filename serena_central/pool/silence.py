"""Calls that wait for a language server, and what happens to them while it sends nothing.

They are sent progress on what they wait for. A server that stays silent is doubted: who does that asks the run
(`Run.is_hung`). Once a call was given up, further ones wait a short time only until the server has said something
again. It reads no message and ends no process.
"""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from serena_central.core import progress
from serena_central.core.errors import ServerSilent
from serena_central.core.running_time import running_time

PROGRESS_S = 5.0
"""Interval at which a call is sent progress, in seconds."""

FURTHER_S = 10.0
"""How long a call waits for a server that left another without an answer and has sent nothing since."""


class _Wait:
    __slots__ = ("began", "listener", "reported_at", "scope")

    def __init__(self, began: float, listener: progress.Listener | None, scope: anyio.CancelScope) -> None:
        self.began = self.reported_at = began
        self.listener = listener
        self.scope = scope


class Silence:
    """Of one run. Belongs to the event loop's thread; times are `running_time`'s."""

    def __init__(self, server: str, heard_at: Callable[[], float]) -> None:
        """`heard_at` tells when the server sent its last message."""
        self._server = server
        self._heard_at = heard_at
        self._waits: set[_Wait] = set()
        self._given_up_at = -math.inf
        self._doubted_at = -math.inf

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Around one operation that needs answers.

        Raises:
            ServerSilent
        """
        began = running_time()
        with anyio.CancelScope() as scope, running_time.counting(scope):
            wait = _Wait(began, progress.listener(), scope)
            if self._given_up_at > self._heard_at():
                scope.deadline = anyio.current_time() + FURTHER_S
            self._waits.add(wait)
            try:
                yield
            except anyio.get_cancelled_exc_class():
                self._gave_up(wait)
                raise
            finally:
                self._waits.discard(wait)
        if scope.cancelled_caught:
            raise ServerSilent(self._server, running_time() - self._heard_at())

    def look(self, doubted_after_s: float) -> bool:
        """Sends progress to the waiting calls; returns whether the server should be pinged now: once per silence."""
        now, heard_at = running_time(), self._heard_at()
        longest_s = 0.0
        for wait in self._waits:
            silent_s = now - max(wait.began, heard_at)
            longest_s = max(longest_s, silent_s)
            if heard_at > self._given_up_at:
                wait.scope.deadline = math.inf
            if now - wait.reported_at >= PROGRESS_S:
                wait.reported_at = now
                if wait.listener is not None:
                    state = f"which has sent nothing for {silent_s:.0f} s" if silent_s >= PROGRESS_S else "which works"
                    wait.listener(f"Waiting for the language server {self._server}, {state}", None)
        if longest_s < doubted_after_s or now - self._doubted_at < doubted_after_s:
            return False
        self._doubted_at = now
        return True

    def _gave_up(self, wait: _Wait) -> None:
        now, heard_at = running_time(), self._heard_at()
        waited_s, silent_s = now - wait.began, now - max(wait.began, heard_at)
        if silent_s > waited_s / 2:
            progress.note_unanswered(f"the language server {self._server} has not answered for {silent_s:.0f} s")
            if silent_s >= PROGRESS_S:
                self._given_up_at = now
        else:
            progress.note_unanswered(f"the language server {self._server} is still working")
