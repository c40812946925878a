"""Brings back, when the server starts, what earlier runs of it found and people still should know: language servers
that projects miss, and what went wrong lately. So pages ask the tally alone.
"""

import logging
import time
from collections.abc import Iterable

import anyio
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.decoding import converted
from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import KINDS, ProjectRemoved, ServerInstalled, ServerMissing
from serena_central.core.events import Event
from serena_central.store.rows import EventRow
from serena_central.store.store import Store
from serena_central.web.tally import NEWS_KEPT, Tally

logger = logging.getLogger(__name__)

MISSING_KEPT_S = 7 * 86_400.0
"""What was missed longer ago is mentioned when its project is opened again."""

LATELY_S = 900.0
"""What went wrong longer ago needs no attention any more."""

MOST_EVENTS = 2000

READY_S = 5.0
"""How long a first page waits for it."""


class Recall:
    """Fills a tally once: when the start of the server is over, or the first page wants it."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._wanted = anyio.Event()
        self._is_done = anyio.Event()

    async def ready(self) -> None:
        """Waits until it is done, for a while."""
        self._wanted.set()
        with anyio.move_on_after(READY_S):
            await self._is_done.wait()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Reads the database, and ends."""
        task_status.started()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(self._until_wanted, waiting.cancel_scope)
            await self._store.started_up()
            waiting.cancel_scope.cancel()
        try:
            await self._recall()
        finally:
            self._is_done.set()

    async def _until_wanted(self, waiting: anyio.CancelScope) -> None:
        await self._wanted.wait()
        waiting.cancel()

    async def _recall(self) -> None:
        kinds = [kind.kind for kind in (ServerMissing, ServerInstalled, ProjectRemoved)]
        now = time.time()
        try:
            about_servers = await self._store.ask(
                lambda queries: queries.events_of_kinds(kinds, now - MISSING_KEPT_S, MOST_EVENTS)
            )
            troubles = await self._store.ask(lambda queries: queries.troubles_since(now - LATELY_S, NEWS_KEPT))
        except StoreError as error:
            logger.warning("what an earlier run of the server found is not shown: %s", error)
            return
        self._tally.recall(known=_events(about_servers), troubles=_events(troubles))


def _events(rows: Iterable[EventRow]) -> list[Event]:
    """Events as they were published; what another version of the server wrote differently is left out."""
    found: list[Event] = []
    for row in rows:
        fields = {name: getattr(row, name) for name in ("seq", "at", "severity", "session", "project", "server")}
        try:
            found.append(converted({**row.data, **fields, "message": row.message}, KINDS[row.kind]))
        except (KeyError, msgspec.ValidationError):
            continue
    return found
