"""Starts a server in the background, waits until it answers, and reports it."""

import time
from collections.abc import Sequence
from subprocess import TimeoutExpired
from typing import NamedTuple

import click

from serena_central.cli.exits import ChildFailed
from serena_central.cli.output import print_json
from serena_central.cli.remote import NoServer, Refused, Remote
from serena_central.core.places import Places
from serena_central.proxy.starting import START_S, spawn_server
from serena_central.standalone.exit_codes import FAILED
from serena_central.standalone.home import Home

POLL_S = 0.05

ANSWER_S = 5.0
"""How long one question, whether the server answers, may take."""

STOP_S = 15.0
"""How long a server that never answered may take to stop."""


class NotStarted(ChildFailed):
    """A server in the background that ended, or doesn't answer."""


class Started(NamedTuple):
    """A server that answers."""

    url: str
    pid: int
    log: str


def start(places: Places, arguments: Sequence[str]) -> Started:
    """Starts `serve` with these arguments.

    Raises:
        NotStarted
    """
    home = Home(str(places.home))
    deadline = time.monotonic() + START_S
    with spawn_server(home, arguments) as spawned:
        child = spawned.process
        while time.monotonic() < deadline:
            if url := _answering(places, child.pid):
                return Started(url, child.pid, str(places.log_file))
            if child.poll() is not None:
                said = spawned.last_line().removeprefix("serena-central: ")
                raise NotStarted(
                    f"{said or 'The server printed nothing.'} (log: {home.start_log})", max(child.returncode, FAILED)
                )
            time.sleep(POLL_S)
        child.terminate()
        try:
            child.wait(STOP_S)
        except TimeoutExpired:
            child.kill()  # which it survives as it survives a power cut
            child.wait()
    raise NotStarted(f"The server did not answer within {START_S:g} s and was stopped. Log: {home.start_log}", FAILED)


def announce(started: Started, *, as_json: bool) -> None:
    if as_json:
        print_json(started._asdict())
        return
    click.echo(f"serena-central serves MCP at {started.url} (pid {started.pid})")
    click.echo(f"Log: {started.log}   (serena-central logs -f)")
    click.echo("Dashboard: serena-central dashboard")
    click.echo("Stop: serena-central stop")


def _answering(places: Places, pid: int) -> str | None:
    """The URL, once the process of this id is the server that answers."""
    try:
        remote = Remote(places, answer_timeout_s=ANSWER_S)
        if remote.pid != pid:
            return None
        remote.get("/health")
    except (NoServer, Refused):
        return None
    return remote.url
