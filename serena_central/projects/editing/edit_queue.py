"""The queue of edits of each file: first come, first served, with a bounded wait.

Who holds a file is the only one in this server that plans or writes it. Others outside may: digests tell.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import anyio

from serena_central.core.errors import EditNotInTime
from serena_central.core.locks import Holder, KeyedLocks, NotInTime

WAIT_S = 300.0
"""How long an edit waits where its caller sets no deadline."""

SHARE = 0.9
"""Of the time that its caller has left an edit waits so much: the rest is for the answer, or the refusal."""


class EditQueue:
    """Of one project's files, by root-relative path. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._locks = KeyedLocks()

    def queued(self, path: str) -> int:
        """How many edit a file, or wait to."""
        return self._locks.queued(path)

    @asynccontextmanager
    async def turn(self, paths: Iterable[str]) -> AsyncGenerator[Holder]:
        """Holds files while the block runs.

        Raises:
            EditNotInTime: others edited one of them until this edit's time was over.
        """
        began = anyio.current_time()
        left_s = min((anyio.current_effective_deadline() - began) * SHARE, WAIT_S)
        try:
            async with self._locks.holding(paths, until=began + max(left_s, 0.0)) as holder:
                yield holder
        except NotInTime as error:
            raise EditNotInTime(error.name, error.ahead, anyio.current_time() - began) from error
