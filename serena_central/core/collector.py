"""When garbage is collected. A full collection goes through all that is alive, which takes 0.1 s in the middle of an
answer with ten thousand places, and everybody waits for it: where it can wait, it comes when no call runs.

What was alive at the start, or when a library was imported late (`core/late_imports.py`), is left alone, so that
collections are short. Of that only a project is large and comes to an end.
"""

import asyncio
import gc
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from serena_central.core.periodic import repeat

THRESHOLDS = 10_000, 3
"""Of the young objects' collections. By default Python goes through everything for each 70,000 new objects, which one
answer with 10,000 places makes several times."""

DUE = 20
"""So many collections of the middle generation make a full one due …"""

OVERDUE = 50
"""… and so many have it come beside running calls: what they have left may be garbage by now. Twice as many left
so much that it took 0.1 s to free it."""

REST_S = 0.005
"""After the end of a call: its answer goes out first."""

EVERY_S = 5.0
"""How often it is looked for where no calls end: files are indexed, say."""


class Collector:
    """This process's; belongs to the event loop's thread."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        """`is_busy`: whether somebody waits for an answer now."""
        self._is_busy = is_busy
        self._awaited = False
        self._all_due = False

    def begin(self) -> None:
        """What is there now stays: no collection looks at it again."""
        gc.freeze()
        gc.set_threshold(*THRESHOLDS, 1_000_000)
        gc.enable()

    def much_ended(self) -> None:
        """What is left alone may be garbage by now: all is looked at as soon as nobody is disturbed."""
        self._all_due = True

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Collects where no calls end, until it is cancelled."""
        task_status.started()
        await repeat("collecting garbage", self.collect, every_s=EVERY_S)

    def call_ended(self) -> None:
        """Collects soon, if that is due."""
        if not self._awaited and gc.get_count()[2] >= DUE:
            self._awaited = True
            asyncio.get_running_loop().call_later(REST_S, self._collect_awaited)

    def collect(self) -> None:
        """Collects if that is due, and disturbs nobody or can't wait any longer."""
        done, is_busy = gc.get_count()[2], self._is_busy()
        if self._all_due and not is_busy:
            self._all_due = False
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        elif done >= OVERDUE or (done >= DUE and not is_busy):
            gc.collect()

    def _collect_awaited(self) -> None:
        self._awaited = False
        self.collect()
