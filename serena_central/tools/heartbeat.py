"""Sends progress every few seconds of a call: what it waits for, how far that is, and for how long.

For callers that listen to progress. What deeper layers report is passed on at once; a beat comes only after silence.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

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
    beats = _Beats(run, reply, listener)
    failure: Exception | None = None
    result: list[T] = []
    with noting_waits() as beats.waits:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beats.run)
            try:
                result.append(await work(beats.report))
            except Exception as error:  # noqa: BLE001 - raised below: a task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result[0]


class _Beats:
    def __init__(self, run: ToolRun, reply: ToolReply, listener: Listener) -> None:
        self._run = run
        self._reply = reply
        self._listener = listener
        self.waits: list[Wait] = []
        self._newest = ""
        self._part: float | None = None
        self._news = anyio.Event()

    def report(self, message: str, part: float | None) -> None:
        self._newest, self._part = message, part
        self._news.set()
        self._listener(message, part)

    async def run(self) -> None:
        while True:
            self._news = anyio.Event()
            with anyio.move_on_after(INTERVAL_S) as silence:
                await self._news.wait()
            # On a busy machine news may come between the end of the silence and this: no beat takes their place.
            if silence.cancelled_caught and not self._news.is_set():
                message, part = standing(self._run.tool, self._reply, self.waits)
                last = f"; last: {self._newest}" if self._newest else ""
                waited = anyio.current_time() - self._run.began
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
