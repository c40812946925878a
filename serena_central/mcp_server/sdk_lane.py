"""The SDK's server with all our handlers: imported by the first message that needs it. That takes as long as all other
imports, and a quarter of the memory of a server that only plain requests come to."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from serena_central.core.late_imports import import_patiently

if TYPE_CHECKING:
    from serena_central.mcp_server.adapter import Adapter


ADAPTER = "serena_central.mcp_server.adapter"

SDK_PACKAGES = ("mcp", "mcp.server")
"""They would import the SDK's clients, with an HTTP client, and its framework for servers: 7 MB."""

LOADED_WITHIN_S = 60.0
"""A message waits no longer for the import; on a busy machine that takes some seconds."""


class SdkLane:
    """Belongs to the event loop's thread."""

    def __init__(self, make: "Callable[[], Adapter]") -> None:
        """`make` is called when the modules are imported."""
        self._make = make
        self._wanted = anyio.Event()
        self._is_loaded = anyio.Event()
        self._adapter: Adapter | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until cancelled."""
        task_status.started()
        await self._wanted.wait()
        await import_patiently(ADAPTER, alone=SDK_PACKAGES)
        self._let_streams_be()
        adapter = self._make()
        async with adapter.modern.run():
            self._adapter = adapter
            self._is_loaded.set()
            await anyio.sleep_forever()

    async def loaded(self) -> "Adapter":
        """What serves a message. Only while `run` runs.

        Raises:
            TimeoutError: it could not be loaded.
        """
        if self._adapter is None:
            self._wanted.set()
            with anyio.fail_after(LOADED_WITHIN_S):
                await self._is_loaded.wait()
            assert self._adapter is not None
        return self._adapter

    def _let_streams_be(self) -> None:
        """The SDK's event streams would end by themselves on a signal, and running calls with them unanswered; the
        composition root ends them in order. So nothing has to look twice a second whether one came."""
        from sse_starlette import sse

        sse.AppStatus.disable_automatic_graceful_drain()
        sse._get_shutdown_state().watcher_started = True  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
