"""A real uvicorn in the test's own event loop, on a port of its own."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import uvicorn

STOP_S = 120.0
"""Far more than a stop takes, on a machine that does much else."""


@asynccontextmanager
async def serving(server: uvicorn.Server, port: int = 0) -> AsyncGenerator[str]:
    """Runs `server` while the block runs, and yields its URL (no slash at the end); then stops it as a signal would.

    A block that fails, or that its test's bound ends, has its server stopped in the same way: one that is cancelled
    leaves its tasks and processes behind, beside the tests that follow.
    """
    with socket.create_server(("127.0.0.1", port)) as listening:
        # uvloop does so by itself; asyncio leaves Nagle's algorithm on, which costs 40 ms for each answer.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listening.getsockname()[1]
        running, ended = anyio.CancelScope(shield=True), anyio.Event()

        async def run() -> None:
            try:
                with running:
                    await server.serve([listening])
            finally:
                ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                with anyio.fail_after(60):  # far more than a start takes, on a machine that does much else
                    while not server.started:
                        await anyio.sleep(0.005)
                yield f"http://127.0.0.1:{port}"
            finally:
                server.should_exit = True
                with anyio.move_on_after(STOP_S, shield=True):
                    await ended.wait()
                running.cancel()
