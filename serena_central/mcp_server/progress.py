"""Relays the progress of a call to the client as throttled notifications.

It knows nothing of what is being waited for, and of MCP only that the reported value must grow.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from serena_central.core.progress import Listener

INTERVAL_S = 0.2
"""Between two notifications: people can't read faster, and every one costs a write to the client."""

WHOLE = 100.0

_STEP = 0.001
"""How much the value grows while the progress is unknown: the protocol requires growth, and it should hardly show."""

Notify = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one notification: value, total (None where it can't be known), message."""


class ProgressRelay:
    """`report` takes what a call says about itself, at any rate; `run` passes on the newest, at most 5 per second."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._newest: tuple[str, float | None] | None = None
        self._news = anyio.Event()
        self._value = 0.0

    def report(self, message: str, part: float | None) -> None:
        """A `core.progress.Listener`: never blocks."""
        self._newest = (message, part)
        self._news.set()

    async def run(self) -> None:
        """Runs until cancelled; belongs to the call's task group."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            if self._newest is not None:
                message, part = self._newest
                await self._notify(self._advance(part), None if part is None else WHOLE, message or None)
            await anyio.sleep(INTERVAL_S)

    def _advance(self, part: float | None) -> float:
        # MCP, "Progress": the value MUST increase with each notification, even when work starts over.
        least = self._value + _STEP
        self._value = least if part is None else max(least, min(part, 1.0) * WHOLE)
        return self._value


@asynccontextmanager
async def relaying(notify: Notify) -> AsyncGenerator[Listener]:
    """Yields a listener whose news reach the client while the block runs."""
    relay = ProgressRelay(notify)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay.run)
        try:
            yield relay.report
        except Exception as error:  # noqa: BLE001 - raised below: a task group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
