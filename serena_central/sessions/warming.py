"""Warms up the project of a new session, if the settings say so. What warming up means is `projects`' business."""

from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from serena_central.core.event_kinds import SessionCreated
from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import follow
from serena_central.projects.warming.warm_up_jobs import WarmUp


class WarmOnStart:
    """Follows the news of sessions. Belongs to the event loop's thread."""

    def __init__(self, bus: EventBus, warm_up: WarmUp, *, only_default: bool) -> None:
        self._bus = bus
        self._warm_up = warm_up
        self._only_default = only_default

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with self._bus.subscribe(SessionCreated) as news:
            task_status.started()
            await follow("warming up for sessions", news, self._take)

    def _take(self, event: Event) -> None:
        if isinstance(event, SessionCreated) and event.folder is not None:
            self._warm_up.start_at(Path(event.folder), event.session or "", only_default=self._only_default)
