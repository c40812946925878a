"""`serena-central connect`: writes our entry into clients' own configurations, or lists what is there."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

from serena_central.cli.connecting import (
    CantConnect,
    Here,
    carry_out,
    clients_argument,
    keys_of,
    project_root,
    scope_options,
    server_runs,
)
from serena_central.cli.output import json_option, print_json, print_table, say
from serena_central.cli.trust_offer import offer_trust
from serena_central.clients.by_hand import BY_HAND, ByHand
from serena_central.clients.change import Change, Unusable, entry_in, putting
from serena_central.clients.client import Client, Proxy, Scope, Transport, is_ours, program_of, renewed
from serena_central.clients.forms import members_of
from serena_central.clients.state import CURRENT, state_of, transport_of
from serena_central.clients.table import CLIENTS

EXAMPLES = """\b
Examples:
  serena-central connect claude-code codex         in the user's configurations
  serena-central connect cursor --dry-run          only shows what would change
  serena-central connect vscode --scope project    in this project's .vscode/mcp.json, to be shared
  serena-central connect gemini --http             directly to the server, without serena-proxy
  serena-central connect jetbrains                 prints what to paste into the IDE's dialog
  serena-central connect --list                    what is configured where

Clients: """


NOT_CONNECTED = "not connected"

STARTED_BY: dict[Transport, str | None] = {"stdio": "serena-proxy", "http": None}
"""What starts a server that does not run, by the way that a client is connected."""


class _Options(NamedTuple):
    scope: Scope
    project: Path | None
    transport: Transport | None
    dry_run: bool


@click.command(epilog=EXAMPLES + ", ".join([*CLIENTS, *BY_HAND]))
@clients_argument([*CLIENTS, *BY_HAND], required=False)
@click.option("--http", "transport", flag_value="http", help="Connect directly to the server, without serena-proxy.")
@click.option("--stdio", "transport", flag_value="stdio", help="Connect through serena-proxy.")
@scope_options
@click.option("--list", "listing", is_flag=True, help="List what is configured where, and whether it is current.")
@json_option
def command(
    *,
    clients: tuple[str, ...],
    transport: Transport | None,
    scope: Scope,
    project: Path | None,
    dry_run: bool,
    listing: bool,
    as_json: bool,
) -> None:
    """Connect clients to this server, by their own configuration files.

    Everything else in a file stays as it is; a copy of it is kept. Clients are connected through serena-proxy, which
    starts the server when it is needed, unless --http is given.
    """
    here = Here.now()
    if listing:
        _list(here, tuple(name for name in clients or CLIENTS if name in CLIENTS), project, as_json=as_json)
        return
    if not clients:
        raise click.UsageError(f"Name at least one client: {', '.join(CLIENTS)}.")
    wanted = _Options(scope, project, transport, dry_run)
    named = dict.fromkeys(clients)
    if transport == "http" and (by_hand := [BY_HAND[name].title for name in named if name in BY_HAND]):
        raise click.UsageError(f"{by_hand[0]} is connected through serena-proxy alone. Omit --http.")
    plans = [(CLIENTS[name], partial(_plan, here, CLIENTS[name], wanted)) for name in named if name in CLIENTS]
    changes = [plan() for _, plan in plans]
    runs = server_runs(here.places)
    done = [_to_paste(BY_HAND[name], here.proxy("user"), as_json=as_json) for name in named if name in BY_HAND]
    for (client, plan), planned in zip(plans, changes, strict=True):
        change, backup = carry_out(planned, plan, here, dry_run=dry_run)
        done.append(_report(here, client, change, backup, dry_run=dry_run, as_json=as_json))
        done[-1] |= {"server_runs": runs, "started_by": STARTED_BY[transport or "stdio"]}
    if as_json:
        print_json(done)
    elif not dry_run:
        click.echo(_starting(transport or "stdio", runs=runs))
        offer_trust(here.places)


def _starting(transport: Transport, *, runs: bool) -> str:
    """Whether a server runs, and what will start the next one."""
    state = "The server is running." if runs else "No server is running."
    if transport == "stdio":
        return f"{state} serena-proxy starts one whenever a client needs it."
    return (
        f"{state} Over HTTP no client starts one: without a server they have no tools. `serena-central service "
        "install` keeps one running, also after a reboot."
    )


def _plan(here: Here, client: Client, wanted: _Options) -> Change:
    """What is to be written into a client's configuration.

    Raises:
        CantConnect
    """
    file = here.file_of(client, wanted.scope, wanted.project)
    new = here.entry(client, wanted.scope, wanted.transport or "stdio", dry_run=wanted.dry_run)
    try:
        old = entry_in(file, client.form, keys_of(client))
        private = wanted.scope == "user" and transport_of(new) == "http"
        return putting(file, client.form, keys_of(client), renewed(old, new), private=private)
    except Unusable as error:
        raise CantConnect(str(error)) from error


def _to_paste(client: ByHand, proxy: Proxy, *, as_json: bool) -> dict[str, Any]:
    text = client.text(proxy)
    if not as_json:
        click.echo(f"{client.title}: paste this {client.where}.\n\n{text}\n")
    return {"client": client.name, "file": None, "changed": False, "paste": text, "where": client.where}


def _report(
    here: Here,
    client: Client,
    change: Change,
    backup: Path | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> dict[str, Any]:
    diff = here.diff(change) if dry_run else None
    old = change.replaced
    replaced = (program_of(members_of(old)) or "something else") if old is not None and not is_ours(old) else None
    if not as_json and change.is_none:
        click.echo(f"{client.title}: already connected ({change.file})")
    elif not as_json and diff is not None:
        click.echo(diff, nl=False)
    elif not as_json:
        click.echo(f"{client.title}: connected in {change.file}. {client.then}")
        if replaced is not None:
            click.echo(f"  This replaced an entry that started {replaced}.")
        if backup is not None:
            click.echo(f"  Backup: {backup}")
    said = {"client": client.name, "file": str(change.file), "changed": not change.is_none and not dry_run}
    return said | {"replaced": replaced, "backup": str(backup) if backup else None, "diff": diff}


def _list(here: Here, names: tuple[str, ...], project: Path | None, *, as_json: bool) -> None:
    rows = [row for name in names for scope in get_args(Scope) if (row := _row(here, CLIENTS[name], scope, project))]
    if as_json:
        print_json(rows)
        return
    # A problem may be a sentence: in a column it would push the others away.
    table = [[row[key] or "-" for key in ("client", "scope", "transport")] + [_brief(row), row["file"]] for row in rows]
    print_table(["CLIENT", "SCOPE", "BY", "STATE", "FILE"], table, empty="")
    for row in rows:
        if row["state"] != _brief(row):
            say(f"{row['client']} ({row['scope']}): {row['state']}")


def _brief(row: dict[str, Any]) -> str:
    """A state in two words."""
    if row["state"] in (CURRENT, NOT_CONNECTED):
        return row["state"]
    return "unreadable" if row["connected"] is False and row["transport"] is None else "see below"


def _row(here: Here, client: Client, scope: Scope, project: Path | None) -> dict[str, Any] | None:
    """What one file says; None where the client has no such file."""
    if scope == "project" and (not client.project_files or project_root(project) == here.machine.home):
        return None
    file = here.file_of(client, scope, project)
    said: dict[str, Any] = {"client": client.name, "scope": scope, "file": str(file), "transport": None}
    try:
        entry = entry_in(file, client.form, keys_of(client))
    except Unusable as error:
        return said | {"connected": False, "state": str(error)}
    if entry is None:
        return said | {"connected": False, "state": NOT_CONNECTED}
    state = state_of(entry, url=here.url, token=here.token, environment=here.machine.environment)
    return said | {
        "transport": transport_of(entry),
        "connected": is_ours(entry),
        "state": state,
        "current": state == CURRENT,
    }
