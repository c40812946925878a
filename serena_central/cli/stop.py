"""`serena-central stop`: ends the running server and waits until it is gone."""

import time

import click

from serena_central.cli.output import json_option, print_json
from serena_central.cli.remote import NoServer, Remote, Unreachable, process_alive
from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import Places
from serena_central.standalone.home import Home
from serena_central.standalone.lock import is_locked

STOP_TIMEOUT_S = 15.0
POLL_S = 0.05

EXIT_S = 1.0
"""How long a process may take to exit after it has released its home. One that is there after that has exited and was
not waited for by its parent (a container whose first process does not), or is another program: a server in another
container has its id there."""


@click.command(epilog="Example: serena-central stop && serena-central serve")
@json_option
def command(*, as_json: bool) -> None:
    """Stop the running server; running calls get up to 5 s to end."""
    pid = stop_server()
    if as_json:
        print_json({"stopped": pid})
    else:
        click.echo(f"Stopped (pid {pid}).")


def stop_server() -> int:
    """Returns the id of the process that ran.

    Raises:
        NoServer, SerenaCentralError
    """
    places = Places.of_user()
    remote = Remote(places)
    pid = remote.pid
    remote.post("/api/v1/shutdown")
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while _holds_home(Home(str(places.home)), pid):
        if time.monotonic() > deadline:
            raise SerenaCentralError(
                f"The server (pid {pid}) is still running {STOP_TIMEOUT_S:g} s after the stop request."
            )
        time.sleep(POLL_S)
    deadline = time.monotonic() + EXIT_S
    while process_alive(pid) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return pid


def stop_any_server() -> bool:
    """As `stop_server`, and whether there was one; one that starts or stops counts as none, since who starts the next
    waits for it.

    Raises:
        Unreachable, SerenaCentralError
    """
    try:
        stop_server()
    except Unreachable:
        raise
    except NoServer:
        return False
    return True


def _holds_home(home: Home, pid: int) -> bool:
    """Whether the server that announced this process id runs. Another one may have been started meanwhile."""
    said = home.announcement()
    return is_locked(home.lock_file) and (said is None or said.pid == pid)
