"""Runs alerts while the settings ask for any; a server without them imports nothing for them."""

import anyio
from anyio.abc import TaskStatus

from serena_central.config.policies import AlertPolicy
from serena_central.config.settings import ServerSettings
from serena_central.core.events import EventBus


class AlertSwitch:
    """Belongs to the event loop's thread."""

    def __init__(self, policy: AlertPolicy, bus: EventBus) -> None:
        self._policy = policy
        self._bus = bus
        self._changed = anyio.Event()

    def take(self, settings: ServerSettings) -> None:
        if settings.alerts != self._policy:
            self._policy = settings.alerts
            self._changed.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; started() when the first alerts can be sent."""
        announced = False
        while True:
            self._changed = anyio.Event()
            async with anyio.create_task_group() as tasks:
                if self._policy.webhook is not None or self._policy.desktop:
                    from serena_central.web.alerts import Alerts

                    await tasks.start(Alerts(self._policy, self._bus).run)
                if not announced:
                    task_status.started()
                    announced = True
                await self._changed.wait()
                tasks.cancel_scope.cancel()
