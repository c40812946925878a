"""`serena-central kill`: ends a session, its running calls and its later ones."""

from urllib.parse import quote

import click

from serena_central.cli.output import json_option, print_json, user_label
from serena_central.cli.remote import Remote, named


@click.command(epilog="Example: serena-central kill s-0f9c2d7e1a")
@click.argument("session")
@json_option
def command(*, session: str, as_json: bool) -> None:
    """Terminate SESSION: running calls are cancelled, later ones refused."""
    ended = Remote().delete(f"{named('/api/v1/sessions', session)}?by={quote(user_label())}")
    if as_json:
        print_json(ended)
    else:
        click.echo(f"{session} was terminated.")
