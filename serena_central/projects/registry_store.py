"""Stores the list of known projects, so that a name means the same after a restart."""

import logging
import time
from functools import partial

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import ProjectOpened, ProjectRemoved
from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import contained, follow
from serena_central.projects.registry import KnownProject, ProjectRegistry
from serena_central.standalone.backoff import backoff_s
from serena_central.store.rows import ProjectRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

RESTORE_S = 10.0
"""A database that does not answer by then must not hold up the server: the list comes when it answers."""

RETRY_S = (0.25, 10.0)
"""First and longest pause while it can't be read."""


class ProjectRecorder:
    """Writes projects as they are opened and removed. Belongs to the event loop's thread."""

    def __init__(self, projects: ProjectRegistry, store: Store, bus: EventBus) -> None:
        self._projects = projects
        self._store = store
        self._bus = bus
        self._restored = False
        self._newer: set[str] = set()
        """Roots that were opened or removed before the list of an earlier run could be read."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Restores the list of an earlier run, then records until cancelled; started() when it is back, or when the
        server must not wait for it any longer."""
        with self._bus.subscribe(ProjectOpened, ProjectRemoved) as news:
            async with anyio.create_task_group() as tasks:
                tried = anyio.Event()
                tasks.start_soon(contained, "restoring projects", partial(self._restore, tried))
                with anyio.move_on_after(RESTORE_S):
                    await tried.wait()
                task_status.started()
                await follow("recording projects", news, self._record)
                tasks.cancel_scope.cancel()

    async def _restore(self, tried: anyio.Event) -> None:
        """Until it was possible."""
        failures = 0
        try:
            while not self._restored:
                await anyio.sleep(backoff_s(failures, first_s=RETRY_S[0], cap_s=RETRY_S[1]))
                try:
                    self._take(await self._store.saved(ProjectRow, lambda queries: queries.projects()))
                except StoreError as error:
                    failures += 1
                    if failures == 1:
                        logger.warning("the list of known projects could not be read: %s", error)
                tried.set()
        finally:
            tried.set()

    def _take(self, rows: list[ProjectRow]) -> None:
        for row in sorted(rows, key=lambda row: row.last_used_at, reverse=True):
            if row.root not in self._newer:
                self._projects.remember(KnownProject(row.name, row.root))
        self._restored = True
        self._newer.clear()

    def _record(self, event: Event) -> None:
        if isinstance(event, ProjectOpened | ProjectRemoved) and not self._restored:
            self._newer.add(event.root)
        if isinstance(event, ProjectOpened) and event.project is not None:
            now = time.time()
            self._store.writer.put(ProjectRow(root=event.root, name=event.project, added_at=now, last_used_at=now))
        elif isinstance(event, ProjectRemoved):
            self._store.writer.remove(ProjectRow, event.root)
