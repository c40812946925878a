"""Stores the list of known projects, so that a name means the same after a restart."""

import logging
import time

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import ProjectOpened, ProjectRemoved
from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import follow
from serena_central.projects.registry import KnownProject, ProjectRegistry
from serena_central.store.rows import ProjectRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

RESTORE_S = 10.0
"""A database that does not answer by then must not hold up the server."""


class ProjectRecorder:
    """Writes projects as they are opened and removed. Belongs to the event loop's thread."""

    def __init__(self, projects: ProjectRegistry, store: Store, bus: EventBus) -> None:
        self._projects = projects
        self._store = store
        self._bus = bus

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Restores the list of an earlier run, then records until cancelled; started() when it is back."""
        with self._bus.subscribe(ProjectOpened, ProjectRemoved) as news:
            await self._restore()
            task_status.started()
            await follow("recording projects", news, self._record)

    async def _restore(self) -> None:
        with anyio.move_on_after(RESTORE_S):
            try:
                rows = await self._store.saved(ProjectRow, lambda queries: queries.projects())
            except StoreError as error:
                logger.warning("the list of known projects could not be read: %s", error)
                return
            for row in sorted(rows, key=lambda row: row.last_used_at, reverse=True):
                self._projects.remember(KnownProject(row.name, row.root))

    def _record(self, event: Event) -> None:
        if isinstance(event, ProjectOpened) and event.project is not None:
            now = time.time()
            self._store.writer.put(ProjectRow(root=event.root, name=event.project, added_at=now, last_used_at=now))
        elif isinstance(event, ProjectRemoved):
            self._store.writer.remove(ProjectRow, event.root)
