"""Runs the server in uvicorn: protocols, timeouts and an orderly stop."""

import socket

import anyio
import uvicorn

from serena_central.access.connections import HEAD_BYTES, bounded_protocol
from serena_central.app.application import Application
from serena_central.core.periodic import aligned

KEEP_ALIVE_S = 120
"""Longer than the usual pause of an agent between two calls, so that it can reuse its connection."""

TICK_S = 0.5
"""Between two looks at whether to stop. With uvicorn's 0.1 s they are half of what an idle server does."""

TICKS_PER_S = 10
"""As uvicorn counts, for which a second is ten ticks of its main loop."""

STOP_S = 5.0
"""After this long what still runs is cut off."""


class CentralServer(uvicorn.Server):
    """uvicorn, stopping in order: streams first, then running calls, each with an answer, within `STOP_S`."""

    def __init__(self, application: Application) -> None:
        self._application = application
        super().__init__(
            uvicorn.Config(
                application.app,
                loop="uvloop",
                http=bounded_protocol(application.connections),
                h11_max_incomplete_event_size=HEAD_BYTES,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(STOP_S),
            )
        )

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter += int(TICK_S * TICKS_PER_S)
            await anyio.sleep(aligned(TICK_S))

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_S == 0:
            self._application.connections.close_late()
            self._application.descriptors.check()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._application.let_go)
            await super().shutdown(sockets)
            tasks.cancel_scope.cancel()
