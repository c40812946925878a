"""Records how much memory language servers take, for plots of any range of time."""

import time
from collections import Counter

import anyio
from anyio.abc import TaskStatus

from serena_central.core.periodic import repeat
from serena_central.pool.pool import LanguageServerPool
from serena_central.store.rows import MemoryTotalRow
from serena_central.store.spans import SPANS_S
from serena_central.store.writer import Writer

EVERY_S = 15.0

MEMORY_SPANS_S = SPANS_S[:2]
"""Of longer ranges the greatest is taken: there are few rows."""


class MemoryRecord:
    """Belongs to the event loop's thread."""

    def __init__(self, pool: LanguageServerPool, writer: Writer) -> None:
        self._pool = pool
        self._writer = writer
        self._written: dict[tuple[int, str], tuple[int, int]] = {}
        """(span, root) → since when, and the most that was written: of servers that rest it is the same each time."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Records until cancelled."""
        task_status.started()
        await repeat("recording memory", self.record, every_s=EVERY_S)

    def record(self) -> None:
        """Puts what the servers take now; nothing while none runs."""
        taken = Counter[str]()
        for one in self._pool.snapshot():
            if one.pid is not None:
                taken[str(one.root)] += one.memory_bytes
        if not taken:
            return
        now = time.time()
        before, self._written = self._written, {}
        for root, memory_bytes in {**taken, "": taken.total()}.items():
            for span in MEMORY_SPANS_S:
                since = int(now // span) * span
                last_since, most = before.get((span, root), (0, 0))
                is_more = last_since != since or most < memory_bytes
                self._written[span, root] = since, memory_bytes if is_more else most
                if is_more:
                    self._writer.put(MemoryTotalRow(span=span, root=root, since=since, memory_bytes=memory_bytes))
