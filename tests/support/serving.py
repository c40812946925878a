"""A real uvicorn in the test's own event loop, on a port of its own."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import uvicorn
from starlette.types import ASGIApp


@dataclass
class Served:
    """A server that runs. `url` has no slash at its end."""

    url: str
    server: uvicorn.Server


@asynccontextmanager
async def serving(app: ASGIApp, *, server_class: type[uvicorn.Server] = uvicorn.Server) -> AsyncGenerator[Served]:
    """Serves `app` while the block runs; leaving it stops the server as a signal would."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        server = server_class(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listening])
            with anyio.fail_after(10):
                while not server.started:
                    await anyio.lowlevel.checkpoint() if server.should_exit else await anyio.sleep(0.005)
            try:
                yield Served(f"http://127.0.0.1:{port}", server)
            finally:
                server.should_exit = True
