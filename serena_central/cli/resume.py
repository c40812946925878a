"""`serena-central resume`: lifts the halt that a hook has put on a session."""

from urllib.parse import quote

import click

from serena_central.cli.output import json_option, print_json, user_label
from serena_central.cli.remote import Remote, named


@click.command(epilog="Example: serena-central resume s-0f9c2d7e1a")
@click.argument("session")
@json_option
def command(*, session: str, as_json: bool) -> None:
    """Resume SESSION, which a hook has halted."""
    done = Remote().post(f"{named('/api/v1/sessions', session)}/resume?by={quote(user_label())}")
    if as_json:
        print_json(done)
    else:
        click.echo(f"{session} was resumed." if done["resumed"] else f"{session} is not halted.")
