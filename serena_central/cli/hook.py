"""`serena-central hook`: puts hooks into clients' configurations and takes them out again. What clients then run is
`serena-hook`, which starts quicker; its commands can be called here, too.
"""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from serena_central.cli import connecting
from serena_central.cli.connecting import CantConnect, Here, carry_out, project_root, scope_options
from serena_central.cli.output import json_option, print_json
from serena_central.clients.change import Change, Unusable, putting, taking
from serena_central.clients.client import Scope
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import OURS, joined
from serena_central.clients.table import CLIENTS, HOOKS
from serena_central.core.places import HOME_VARIABLE
from serena_central.hook.enforce import MODES
from serena_central.hook.main import run

EXAMPLES = """\b
Examples:
  serena-central hook install claude-code                    in ~/.claude/settings.json
  serena-central hook install cursor vscode --scope project  in this project's files, to be shared
  serena-central hook install codex --mode nudge --dry-run   only shows what would change
  serena-central hook uninstall claude-code

Clients: """

RUN_BY_CLIENTS = ("enforce", "session-start", "session-end", "gate")

clients_argument = connecting.clients_argument(HOOKS, required=True)


@click.group(epilog=EXAMPLES + ", ".join(HOOKS))
def command() -> None:
    """Lead coding agents from text search to these tools."""


@command.command("install", epilog="Example: serena-central hook install claude-code --dry-run")
@clients_argument
@click.option("--mode", type=click.Choice(MODES), default="deny", show_default=True, help="How to handle searches.")
@click.option("--source-folder", "folders", multiple=True, help="A source folder, instead of src, lib and so on.")
@click.option("--gates", is_flag=True, help="Also run the hooks of your settings around the clients' own tools.")
@scope_options
@json_option
def install(*, clients: tuple[str, ...], mode: str, folders: tuple[str, ...], gates: bool, **given: Any) -> None:
    """Have clients ask serena-hook before they search.

    Searches for code are stopped (deny), every third one (nudge), left to you (ask), or not touched (off). All else in
    a client's file stays as it is; a copy of it is kept.
    """
    here = Here.now()
    for name in clients:
        if mode == "ask" and not HOOKS[name].can_ask:
            raise click.UsageError(
                f"{CLIENTS[name].title} does not support hooks that ask the user. Choose --mode deny or nudge."
            )

    options = "" if mode == "deny" else f" --mode {mode}"
    options += "".join(f" --source-folder {shlex.quote(folder)}" for folder in folders)

    def plan(name: str, file: Path, scope: Scope) -> Change:
        return putting(file, HOOKS[name].form, OURS, _entry(here, name, scope, options, gates=gates), private=False)

    _change(here, clients, plan, installs=True, **given)


@command.command("uninstall", epilog="Example: serena-central hook uninstall claude-code")
@clients_argument
@scope_options
@json_option
def uninstall(*, clients: tuple[str, ...], **given: Any) -> None:
    """Take our hooks out of clients' files again.

    Where nothing else was changed since they came, the file is what it was before.
    """
    here = Here.now()

    def plan(name: str, file: Path, _scope: Scope) -> Change:
        return taking(file, HOOKS[name].form, OURS, here.backups, lambda old: old is not None)

    _change(here, clients, plan, installs=False, **given)


def _change(
    here: Here,
    clients: tuple[str, ...],
    plan: Callable[[str, Path, Scope], Change],
    *,
    installs: bool,
    scope: Scope,
    project: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Plans all changes, then makes and reports them.

    Raises:
        CantConnect
    """
    plans = {name: partial(plan, name, _file(here, name, scope, project), scope) for name in dict.fromkeys(clients)}
    try:
        changes = {name: planning() for name, planning in plans.items()}
    except Unusable as error:
        raise CantConnect(str(error)) from error
    done, already = ("installed in", "are already installed in") if installs else ("removed from", "are not in")
    said: list[dict[str, Any]] = []
    for name, planned in changes.items():
        change, backup = carry_out(planned, plans[name], here, dry_run=dry_run)
        diff = here.diff(change) if dry_run else None
        about = {"client": name, "file": str(change.file), "changed": not change.is_none and not dry_run}
        said.append(about | {"backup": str(backup) if backup else None, "diff": diff})
        if not as_json and diff and not change.is_none:
            click.echo(diff, nl=False)
        elif not as_json:
            then = f" {HOOKS[name].then}" if installs and not change.is_none else ""
            click.echo(f"{CLIENTS[name].title}: hooks {already if change.is_none else done} {change.file}.{then}")
    if as_json:
        print_json(said)


def _file(here: Here, name: str, scope: Scope, project: Path | None) -> Path:
    if scope == "user":
        return HOOKS[name].user_file(here.machine)
    root = project_root(project)
    if root == here.machine.home:
        raise click.UsageError(f"{root} is your home folder, not a project. Name one with --project.")
    return root / HOOKS[name].project_file


def _entry(here: Here, name: str, scope: Scope, options: str, *, gates: bool) -> Entry:
    """The groups for one client; `options` are those of `enforce`. What others share names no path of this machine."""
    program = "serena-hook" if scope == "project" else f"{shlex.quote(sys.executable)} -I -m serena_central.hook"
    home = here.machine.environment.get(HOME_VARIABLE)
    settings = f"{HOME_VARIABLE}={shlex.quote(str(here.places.home))} " if home and scope == "user" else ""

    def command_for(does: str) -> str:
        # Some clients stop a tool when its hook can't be started: it may be missing on another machine, or later.
        return f"{settings}{program} {does} --client {name}{options if does == 'enforce' else ''} || exit 0"

    entry, gated = HOOKS[name].entry(command_for), HOOKS[name].gates
    return joined(entry, gated(command_for)) if gates and gated is not None else entry


def _passed_on(does: str) -> click.Command:
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def pass_on(arguments: tuple[str, ...]) -> None:
        run("serena-central hook", [does, *arguments])

    settings: dict[str, Any] = {"ignore_unknown_options": True, "help_option_names": []}
    text = f"Run by clients as `serena-hook {does}`."
    return click.command(does, context_settings=settings, add_help_option=False, help=text)(pass_on)


for _name in RUN_BY_CLIENTS:
    command.add_command(_passed_on(_name))
