"""Runs the server in uvicorn: protocols, timeouts and an orderly stop."""

import asyncio
import socket
import time
from email.utils import formatdate

import anyio
import uvicorn
from uvicorn.server import ServerState

from serena_central.access.connections import HEAD_BYTES, bounded_protocol
from serena_central.app.application import Application

KEEP_ALIVE_S = 120
"""Longer than the usual pause of an agent between two calls, so that it can reuse its connection."""

STOP_S = 5.0
"""After this long what still runs is cut off."""


class _DatedState(ServerState):
    """uvicorn's, whose headers have the date of the moment: uvicorn writes it once a second, asked or not."""

    def __init__(self) -> None:
        self._dated_s = -1
        self._dated: list[tuple[bytes, bytes]] = []
        super().__init__()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        now_s = int(time.time())
        if now_s != self._dated_s:
            self._dated_s, self._dated = now_s, [(b"date", formatdate(now_s, usegmt=True).encode())]
        return self._dated

    @default_headers.setter
    def default_headers(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, _value: list[tuple[bytes, bytes]]
    ) -> None:
        """uvicorn's own are those of above."""


class CentralServer(uvicorn.Server):
    """uvicorn, stopping in order: streams first, then running calls, each with an answer, within `STOP_S`."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._loop: asyncio.AbstractEventLoop | None = None
        """Of `main_loop`, once it runs."""
        self._woken = asyncio.Event()
        self._should_exit = False
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
        self.server_state = _DatedState()

    @property
    def should_exit(self) -> bool:
        """Set by any thread, or in a signal handler: stops the server."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._woken.set()

    async def main_loop(self) -> None:
        """Instead of uvicorn's, which wakes up ten times a second: until it is to stop."""
        connections, descriptors = self._application.connections, self._application.descriptors
        self._loop = asyncio.get_running_loop()
        connections.on_due = self._wake
        while not self.should_exit:
            self._woken = asyncio.Event()
            after_s = connections.close_late()
            descriptors.check()
            with anyio.move_on_after(after_s):
                await self._woken.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._application.let_go)
            await super().shutdown(sockets)
            tasks.cancel_scope.cancel()
