"""Sends progress every few seconds of a call: what it waits for, how far that is, and for how long.

For callers that listen to progress. What deeper layers report is passed on at once; a beat comes only after silence.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from serena_central.core.progress import Listener, Wait, noting_waits
from serena_central.core.quoting import quoted
from serena_central.tools.tool_run import PlacedProject, ToolReply, ToolRun

INTERVAL_S = 3.0

WAITS_SHOWN = 3
"""At a time: the outermost, and the newest."""

T = TypeVar("T")


async def with_heartbeat(
    run: ToolRun, reply: ToolReply, listener: Listener, work: Callable[[Listener], Awaitable[T]]
) -> T:
    """The result of `work`, which is given the listener to report to."""
    with noting_waits() as waits:
        beats = _Beats(run, reply, listener, waits)
        try:
            return await work(beats.report)
        finally:
            beats.stop()


class _Beats:
    """By timers, not by a task: most calls are over before the first."""

    def __init__(self, run: ToolRun, reply: ToolReply, listener: Listener, waits: Sequence[Wait]) -> None:
        self._run = run
        self._reply = reply
        self._listener = listener
        self._waits = waits
        self._newest = ""
        self._part: float | None = None
        self._loop = asyncio.get_running_loop()
        self._quiet_since = self._loop.time()
        self._timer = self._loop.call_later(INTERVAL_S, self._look)

    def report(self, message: str, part: float | None) -> None:
        self._newest, self._part = message, part
        self._quiet_since = self._loop.time()
        self._listener(message, part)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self, *, news_first: bool = True) -> None:
        now = self._loop.time()
        late_s = now - (self._quiet_since + INTERVAL_S)
        if late_s < 0:
            self._timer = self._loop.call_later(-late_s, self._look)
        elif news_first and late_s > INTERVAL_S / 2:
            # The loop was held up, and there may be news that only wait for their turn: no beat takes their place.
            self._timer = self._loop.call_later(INTERVAL_S / 2, partial(self._look, news_first=False))
        else:
            self._quiet_since = now
            self._timer = self._loop.call_later(INTERVAL_S, self._look)
            self._beat()

    def _beat(self) -> None:
        message, part = standing(self._run.tool, self._reply, self._waits)
        last = f"; last: {self._newest}" if self._newest else ""
        waited = self._loop.time() - self._run.began
        self._listener(f"{message}{last} ({waited:.0f} s)", self._part if part is None else part)


def standing(tool: str, reply: ToolReply, waits: Sequence[Wait] = ()) -> tuple[str, float | None]:
    """What a call that has reported nothing waits for: by itself, else as far as its projects tell."""
    if waits:
        said = [wait() for wait in waits]
        texts = list(dict.fromkeys(text for text, _ in said))
        shown = texts if len(texts) <= WAITS_SHOWN else [texts[0], *texts[-WAITS_SHOWN + 1 :]]
        return f"{tool}: {'; '.join(shown)}", next((part for _, part in said if part is not None), None)
    for project in reply.projects:
        if isinstance(project, PlacedProject):
            continue
        installing = project.languages.availability.installing()
        if installing:
            return installing[0].text(time.time()), None
        progress = project.indexer.progress
        if progress.waiting:
            said = f"{tool}: {quoted(project.name)} is being indexed, {progress}"
            return said, progress.indexed / progress.total
    if reply.projects:
        return f"{tool} is running on {', '.join(quoted(one.name) for one in reply.projects[:3])}", None
    return f"{tool} is running", None
