"""`serena-central stop`: ends the running server and waits until it is gone."""

import time

import click

from serena_central.cli.output import json_option, print_json
from serena_central.cli.remote import Remote, process_alive
from serena_central.core.errors import SerenaCentralError

STOP_TIMEOUT_S = 15.0
POLL_S = 0.05


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
    remote = Remote()
    pid = remote.pid
    remote.post("/api/v1/shutdown")
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while process_alive(pid):
        if time.monotonic() > deadline:
            raise SerenaCentralError(
                f"The server (pid {pid}) is still running {STOP_TIMEOUT_S:g} s after the stop request."
            )
        time.sleep(POLL_S)
    return pid
