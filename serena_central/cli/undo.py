"""`serena-central undo`: undoes an edit, unless its lines have changed since."""

from urllib.parse import quote

import click

from serena_central.cli.output import json_option, print_json, say, user_label
from serena_central.cli.remote import Remote, named


@click.command(epilog="Example: serena-central undo e-4f2a9c01d3b7")
@click.argument("edit")
@json_option
def command(*, edit: str, as_json: bool) -> None:
    """Undo EDIT; `serena-central history` lists edits. Refused if its lines have changed since."""
    undone = Remote().post(f"{named('/api/v1/edits', edit)}/undo?by={quote(user_label())}")
    if as_json:
        print_json(undone)
    else:
        files = ", ".join(file["moved_to"] or file["path"] for file in undone["files"])
        say(f"{edit} was undone by {undone['edit']}: {files}")
