"""`serena-central disconnect`: takes our entry out of clients' configurations again."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from serena_central.cli.connecting import CantConnect, Here, carry_out, clients_argument, keys_of, scope_options
from serena_central.cli.output import json_option, print_json
from serena_central.clients.change import Change, Unusable, entry_in, taking
from serena_central.clients.client import Client, Scope, is_ours
from serena_central.clients.table import CLIENTS


@click.command(epilog="Example: serena-central disconnect claude-code --dry-run")
@clients_argument(CLIENTS, required=True)
@scope_options
@json_option
def command(*, clients: tuple[str, ...], scope: Scope, project: Path | None, dry_run: bool, as_json: bool) -> None:
    """Disconnect clients: take our entry out of their configuration files, and leave the rest as it is.

    Where nothing else was changed since `connect`, the file is what it was before.
    """
    here = Here.now()
    plans = [(CLIENTS[name], partial(_plan, here, CLIENTS[name], scope, project)) for name in dict.fromkeys(clients)]
    changes = [plan() for _, plan in plans]
    done: list[dict[str, Any]] = []
    for (client, plan), planned in zip(plans, changes, strict=True):
        change, backup = carry_out(planned, plan, here, dry_run=dry_run)
        diff = here.diff(change) if dry_run else None
        said = {"client": client.name, "file": str(change.file), "changed": not change.is_none and not dry_run}
        done.append(said | {"backup": str(backup) if backup else None, "diff": diff})
        if as_json:
            continue
        if change.is_none:
            click.echo(f"{client.title}: not connected in {change.file}")
        elif diff is not None:
            click.echo(diff, nl=False)
        else:
            click.echo(f"{client.title}: disconnected in {change.file}.")
    if as_json:
        print_json(done)


def _plan(here: Here, client: Client, scope: Scope, project: Path | None) -> Change:
    file = here.file_of(client, scope, project)
    try:
        entry = entry_in(file, client.form, keys_of(client))
        if entry is not None and not is_ours(entry):
            raise CantConnect(
                f"The entry {'.'.join(keys_of(client))} in {file} was not written by serena-central. It was not "
                "changed."
            )
        return taking(file, client.form, keys_of(client), here.backups, is_ours)
    except Unusable as error:
        raise CantConnect(str(error)) from error
