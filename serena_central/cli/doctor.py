"""`serena-central doctor`: checks the machine, the server, its languages and settings, with or without a running
server.

The checks stand in `checks/`: machine, server, languages. Each says what it found, and what to do about it.
"""

import anyio
import click

from serena_central.cli.checks.check import finished
from serena_central.cli.checks.languages import check_languages
from serena_central.cli.checks.machine import check_machine
from serena_central.cli.checks.server import check_server
from serena_central.cli.exits import Unsuccessful
from serena_central.cli.output import json_option, print_json, printable
from serena_central.core.places import Places

MARKS = {"ok": "ok     ", "info": "       ", "warning": "WARNING", "failed": "FAILED "}


@click.command(epilog="Exits with 1 if a required check fails. Example: serena-central doctor --json")
@json_option
@click.option("--node", is_flag=True, help="Check a machine of a cluster, on which no server is expected.")
def command(*, as_json: bool, node: bool) -> None:
    """Check machine, settings, server, database and language servers; each problem says what to do."""
    places = Places.of_user()
    server = () if node else finished(check_server(places))
    checks = [*finished(check_machine(places)), *server, *anyio.run(check_languages, places)]
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        for check in checks:
            click.echo(f"{MARKS[check.state]} {check.name}: {printable(check.says)}")
            if check.advice:
                click.echo(f"        → {printable(check.advice)}")
    if any(check.state == "failed" for check in checks):
        raise Unsuccessful
