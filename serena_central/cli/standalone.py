"""`serena-mcp-server --standalone`: server and proxy in one process, over stdio, for one client; nothing stays behind.

The proxy runs in a thread and speaks to the server over a loopback port, so that each call goes the way it always
goes. The home is a temporary one: two of these, or one beside the user's server, share language servers' installations
and nothing else.
"""

import argparse
import signal
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio

from serena_central.app import Application, CentralServer, build
from serena_central.cli.exits import end_with_code
from serena_central.config.layers import Loaded
from serena_central.config.load import load_server_config
from serena_central.config.settings import ServerSettings
from serena_central.core.descriptors import raise_limit
from serena_central.core.logs import log_to
from serena_central.core.places import Places
from serena_central.proxy.caller import Caller
from serena_central.proxy.event_loop import Loop
from serena_central.proxy.lifetime import ENDING, end_on_wake
from serena_central.proxy.link import Link
from serena_central.proxy.main import options_of, parser
from serena_central.proxy.pipes import Input, Output
from serena_central.proxy.stdio_proxy import StdioProxy
from serena_central.standalone.home import Home
from serena_central.standalone.private import restrict_umask
from serena_central.standalone.streams import open_missing_streams


@dataclass(frozen=True, slots=True)
class OwnPlaces(Places):
    """A home of one process; language servers are installed where the user's server has them."""

    shared: Places

    @property
    def servers(self) -> Path:
        return self.shared.servers


def main() -> None:
    """Runs until the client goes."""
    asked = parser("serena-mcp-server --standalone").parse_args()
    end_with_code("serena-mcp-server", lambda: _serve(asked))


def _serve(asked: argparse.Namespace) -> None:
    open_missing_streams()
    restrict_umask()
    raise_limit()
    users = Places.of_user()
    users.create()
    loaded = load_server_config({"central_server_host": "127.0.0.1", "central_server_port": 0})
    log_to(users.logs / "standalone.log", loaded.value.log_level, loaded.value.log_format)
    with (
        tempfile.TemporaryDirectory(prefix="serena-standalone-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        listener.setblocking(False)
        anyio.run(_run, loaded, OwnPlaces(Path(folder), users), listener, asked)


class _Announcing(CentralServer):
    """Tells when it takes connections."""

    def __init__(self, application: Application, up: anyio.Event) -> None:
        super().__init__(application)
        self._up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._up.set()


async def _run(
    loaded: Loaded[ServerSettings], places: Places, listener: socket.socket, asked: argparse.Namespace
) -> None:
    def stop(*_signal: object) -> None:
        server.should_exit = True

    up, loop = anyio.Event(), Loop()
    server = _Announcing(build(loaded, places, stop=stop), up)
    for name in ENDING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)  # the web server hands signals on when it has stopped

    async def serve() -> None:
        try:
            await server.serve(sockets=[listener])
        finally:
            up.set()
            loop.wake(b"\0")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        await up.wait()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        try:
            await anyio.to_thread.run_sync(_proxy, loop, places, url, asked)
        finally:
            stop()


def _proxy(loop: Loop, places: Places, url: str, asked: argparse.Namespace) -> None:
    """In a thread: until stdin ends, or the server does."""
    link = Link(loop, Home(str(places.home)), url=url, token_file=str(places.token_file), starter=None)
    proxy = StdioProxy(loop, link, Caller(link, options_of(asked)), Input(loop, 0), Output(loop, 1))
    end_on_wake(loop, proxy.end)
    loop.run(proxy.run())


if __name__ == "__main__":
    main()
