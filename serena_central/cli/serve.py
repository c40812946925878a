"""`serena-central serve`: the server in the foreground, one per user."""

import faulthandler
import gc
import json
import logging
import os
import resource
import socket
import sys
import time
import webbrowser
from collections.abc import Generator, Iterable
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import click

from serena_central.cli import detached
from serena_central.cli.cluster import needs_ray
from serena_central.cli.dashboard import page_address
from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import GivenPath
from serena_central.cli.home_lock import HomeLock, hold_alone
from serena_central.cli.port import listening
from serena_central.cli.remote import HOOK_VARIABLE
from serena_central.cli.stop_signals import StopSignals
from serena_central.cli.trust_offer import offer_trust
from serena_central.cli.writable_home import check_writable
from serena_central.config.layers import Loaded
from serena_central.config.load import load_server_config, variables
from serena_central.config.settings import ServerSettings
from serena_central.core import tracing
from serena_central.core.allocator import keep_little
from serena_central.core.descriptors import raise_limit
from serena_central.core.errors import ConfigError, SerenaCentralError
from serena_central.core.logs import log_to
from serena_central.core.places import Places
from serena_central.files.atomic import write_whole
from serena_central.store.inspection import check_usable

if TYPE_CHECKING:
    from serena_central.app.build import Cluster
    from serena_central.projects.registry import ProjectRegistry

logger = logging.getLogger(__name__)

SWITCH_S = 0.0001
"""How long one thread may keep Python from another; 5 ms by default. So calls wait less for a thread that reads or
converts, and a thread that asks the database less for calls: it has to wait at every row."""


CLUSTER_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""What a server of a cluster may be given beside its settings."""


class _Start(NamedTuple):
    """What to do once the server answers; `arguments` restart it at the same address."""

    arguments: list[str]
    projects: tuple[Path, ...]
    open_page: bool
    cluster: str | None


@click.command(
    epilog="Examples: serena-central serve --project ~/src/app    serena-central serve --daemon    "
    "serena-central serve --port 0",
)
@click.option("--host", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (default 24280; 0: a free one).")
@click.option(
    "--project",
    "projects",
    multiple=True,
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="A project to open at startup (repeatable).",
)
@click.option(
    "--cluster",
    metavar="HOST:PORT|local",
    help="Have the nodes of this cluster hold the projects; local: a cluster of this machine alone.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the dashboard in the browser.")
@click.option("--daemon", is_flag=True, help="Run in the background; return once the server answers.")
@click.option("--json", "as_json", is_flag=True, help="With --daemon: print JSON.")
def command(
    *,
    host: str | None,
    port: int | None,
    projects: tuple[Path, ...],
    cluster: str | None,
    open_page: bool,
    daemon: bool,
    as_json: bool,
) -> None:
    """Run the server in the foreground; Ctrl-C stops it. With --daemon, `serena-central stop` does."""
    if as_json and not daemon:
        raise click.UsageError("--json requires --daemon.")
    if daemon:
        check_writable(Places.of_user())  # what it would say of that goes to a log in there
        started = detached.start(Places.of_user(), _arguments(host, port, projects, cluster, open_page=open_page))
        detached.announce(started, as_json=as_json)
        return
    os.environ.pop(HOOK_VARIABLE, None)  # if a hook starts this server, what the server starts is no call of that hook
    offer_trust(Places.of_user())
    signals = StopSignals()
    signals.take()  # no server is announced yet, and what runs it leaves behind only what kill -9 does, too
    loaded = load_server_config({"central_server_host": host, "central_server_port": port})
    for problem in loaded.problems:
        click.echo(f"serena-central: {problem}", err=True)
    if not loaded.value.central_server_enabled:
        raise ConfigError("central_server_enabled", "is off, so no server is started; turn it on to serve")
    raise_limit()
    # What settings resolve to is a secret that a core file would hold. What it starts inherits this.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    keep_little()
    places = Places.of_user()
    repaired = places.create()
    check_writable(places)
    log_to(places.log_file, loaded.value.log_level, loaded.value.log_format)
    faulthandler.enable(places.log_file.open("a"))  # a crash in a library's C code leaves each thread's stack
    if repaired:
        logger.warning("%s", repaired)
    with hold_alone(places) as lock, listening(loaded.value) as listener:
        check_usable(places.database, loaded.value.database_url)
        url = _url(listener, loaded.value.central_server_host)
        sending = tracing.exporting(metadata.version("serena-central")) if loaded.value.tracing else nullcontext()
        again = _arguments(host, listener.getsockname()[1] if port is not None else None, (), cluster)
        with sending, _unannounced(places):
            start = _Start(again, projects, open_page, cluster)
            sys.setswitchinterval(SWITCH_S)
            anyio.run(_serve, loaded, places, lock, listener, url, start, signals, backend_options={"use_uvloop": True})
    signals.exit()


def _arguments(
    host: str | None, port: int | None, projects: tuple[Path, ...], cluster: str | None, *, open_page: bool = False
) -> list[str]:
    """The command line of a server that is started in another folder."""
    opened = [("--project", project.absolute()) for project in projects]
    said = [("--host", host), ("--port", port), ("--cluster", cluster), *opened]
    given = [str(part) for flag, value in said if value is not None for part in (flag, value)]
    return [*given, "--open"] if open_page else given


def _url(listener: socket.socket, host: str) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host.strip('[]')}]:{port}/mcp" if ":" in host else f"http://{host}:{port}/mcp"


@contextmanager
def _unannounced(places: Places) -> Generator[None]:
    """No `server.json` stands before the block, where it would be one of a server that was killed, and after it."""
    places.server_file.unlink(missing_ok=True)
    try:
        yield
    finally:
        places.server_file.unlink(missing_ok=True)


def _write_announcement(places: Places, url: str, arguments: list[str]) -> None:
    """Written only when the server answers and its token can be read, so that its readers can call at once."""
    version = metadata.version("serena-central")
    needed = (*variables(), *(CLUSTER_VARIABLES if "--cluster" in arguments else ()))
    given = [name for name in needed if name in os.environ]
    again = {"arguments": arguments, "variables": given}
    about = {"url": url, "pid": os.getpid(), "version": version, "started_at": time.time(), **again}
    write_whole(places.server_file, json.dumps(about).encode())


async def _serve(
    loaded: Loaded[ServerSettings],
    places: Places,
    lock: HomeLock,
    listener: socket.socket,
    url: str,
    start: "_Start",
    signals: StopSignals,
) -> None:
    """Runs until a signal or a request to stop."""
    gc.disable()  # until it answers: of what is imported and built nothing is garbage
    # The server's parts take a second to import: after the checks that may refuse to start.
    from serena_central.app import CentralServer, build

    def stop() -> None:
        server.should_exit = True

    async with _cluster(start.cluster, start.projects, loaded.value, places) as cluster:
        application = build(loaded, places, stop=stop, cluster=cluster)
        application.store.before_leaving = lock.end_if_lost

        class Announcing(CentralServer):
            @contextmanager
            def capture_signals(self) -> Generator[None]:
                """Instead of uvicorn's, which drops a SIGTERM that comes while it stops."""
                signals.stop_with(stop)
                yield

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if not self.started or self.should_exit:
                    return
                roots = _known(application.projects, start.projects)  # before the first client asks, which may be quick
                _write_announcement(places, url, start.arguments)
                application.collector.begin()
                link = page_address(url, application.dashboard.one_time_link(here_alone=True))
                _announce(places, url, link)
                if start.open_page:
                    webbrowser.open(link)
                for root in roots if cluster is None else ():
                    try:
                        await application.projects.open(root)
                    except SerenaCentralError as error:
                        click.echo(f"serena-central: {error}", err=True)

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                lock.end_if_lost()
                await super().shutdown(sockets)

        server = Announcing(application)
        async with lock.checked():
            with suppress(SystemExit):  # uvicorn's, with a code of its own, where the lifespan did not start
                await server.serve(sockets=[listener])
    _check_end(application.failures)
    if server.lifespan.error_occurred:
        raise Unsuccessful  # the log says of what


def _check_end(failures: Iterable[BaseException]) -> None:
    """Raises SerenaCentralError for a server that did not stop because somebody asked it to."""
    for cause in failures:
        kind = "" if isinstance(cause, SerenaCentralError) else f"{type(cause).__name__}: "
        raise SerenaCentralError(f"The server stopped because a part of it failed. {kind}{cause}") from cause


def _cluster(
    address: str | None, projects: tuple[Path, ...], settings: ServerSettings, places: Places
) -> AbstractAsyncContextManager["Cluster | None"]:
    """The project hosts of a cluster while the block is open; None without one."""
    if address is None:
        return nullcontext()
    needs_ray()
    from serena_central.cluster.serving import fronting

    return fronting(address, [*map(str, projects), *settings.projects], places)


def _known(projects: "ProjectRegistry", asked: Iterable[Path]) -> list[Path]:
    """The roots of folders that may become projects, which they are from now on; says why others may not."""
    from serena_central.projects.registry import KnownProject

    roots: list[Path] = []
    for folder in asked:
        try:
            root = projects.check(folder)
        except SerenaCentralError as error:
            click.echo(f"serena-central: {error}", err=True)
            continue
        projects.remember(KnownProject(root.name, str(root)))
        roots.append(root)
    return roots


def _announce(places: Places, url: str, link: str) -> None:
    click.echo(f"serena-central {metadata.version('serena-central')} serves MCP at {url}")
    click.echo(f"Token: {places.token_file}   (clients send it as `Authorization: Bearer …`)")
    click.echo("Connect a client: serena-central connect claude-code   (or another: serena-central connect --help)")
    click.echo(f"Dashboard, for one browser within ten minutes (`serena-central dashboard` opens another):\n  {link}")
    click.echo("Stop: Ctrl-C")
