"""`serena-central restart`: the server stopped and started again, at the same address, as after an upgrade."""

import os

import click

from serena_central.cli import detached
from serena_central.cli.output import json_option, print_json
from serena_central.cli.service import running_service
from serena_central.cli.stop import stop_any_server
from serena_central.config.load import Sources, missing_without
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.standalone.home import Home


@click.command(epilog="Example: git pull && pipx install --force . && serena-central restart")
@json_option
def command(*, as_json: bool) -> None:
    """Stop the server and start it in the background. Sessions continue; clients need not do anything."""
    places = Places.of_user()
    if (service := running_service()) is not None:
        service.restart()
        if as_json:
            print_json({"restarted_by": service.title})
        else:
            click.echo("Restarted by the system (serena-central service status).")
        return
    announced = Home(str(places.home)).announcement()
    arguments = announced.arguments if announced else []
    if missing := missing_without(announced.variables if announced else (), os.environ):
        raise InvalidArguments(
            f"Not restarted: the server was started with {', '.join(missing)}, which this environment lacks, and would "
            f"come back without. Set it here or in {Sources().user}; or use `stop`, then `serve --daemon`."
        )
    if not stop_any_server():
        click.echo("No server was running.", err=as_json)
    detached.announce(detached.start(places, arguments), as_json=as_json)
