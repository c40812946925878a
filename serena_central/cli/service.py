"""`serena-central service`: lets systemd or launchd start the server at login and restart it after a failure."""

import os
from functools import partial
from pathlib import Path

import click

from serena_central.cli.connecting import Here, carry_out
from serena_central.cli.output import json_option, print_json
from serena_central.cli.remote import NoServer, Remote
from serena_central.cli.stop import stop_any_server
from serena_central.cli.supervisors import NotSupervised, Program, Supervisor, of_this_machine, run
from serena_central.clients.change import Change, Unusable, replacing
from serena_central.config.load import Sources, missing_without, variables
from serena_central.core.places import Places


@click.group(epilog="Example: serena-central service install --dry-run")
def command() -> None:
    """Let the system (systemd, launchd) start the server at login."""


@command.command(short_help="Install and start it.", epilog="Example: serena-central service install")
@click.option("--dry-run", is_flag=True, help="Show the file and the commands without changing anything.")
@json_option
def install(*, dry_run: bool, as_json: bool) -> None:
    """Write the service's file and start it; a server that runs already goes over to it, with its sessions."""
    places = Places.of_user()
    supervisor, program = of_this_machine(), Program.of_this_installation(places.logs / "start.log")
    content = supervisor.content(program)
    started, backup = False, None
    missing = missing_without([name for name in variables() if name in os.environ], program.environment)
    if missing:
        click.echo(
            f"The service will not have {', '.join(missing)}, set in this environment: put it into {Sources().user}.",
            err=True,
        )
    if not dry_run:
        places.create()
        plan = partial(_planned, supervisor, content)
        _, backup = carry_out(plan(), plan, Here.now(), dry_run=False)
        started = _start(supervisor)
    if as_json:
        about = {"file": str(supervisor.file), "content": content.decode(errors="replace")}
        written = {"written": not dry_run, "backup": str(backup) if backup else None, "started": started}
        print_json({**about, "commands": supervisor.starting(), **written})
    elif dry_run:
        click.echo(f"{supervisor.file}:\n{content.decode(errors='replace')}")
        _tell(supervisor.starting())
    elif started:
        _tell_written(supervisor, backup)
        click.echo(
            "The service is running and starts at each login. To keep it running after logout: loginctl enable-linger"
        )
    else:
        _tell_written(supervisor, backup)
        click.echo(
            f"Not started: {supervisor.title} is not running for this user. Where it is, start the service with:"
        )
        _tell(supervisor.starting())
        click.echo("Otherwise, start the server with: serena-central serve --daemon")


def _planned(supervisor: Supervisor, content: bytes) -> Change:
    """Raises NotSupervised."""
    try:
        return replacing(supervisor.file, content)
    except Unusable as error:
        raise NotSupervised(str(error)) from error


def _tell_written(supervisor: Supervisor, backup: Path | None) -> None:
    click.echo(f"Wrote {supervisor.file}")
    if backup is not None:
        click.echo(f"  Backup: {backup}")


def _start(supervisor: Supervisor) -> bool:
    """Starts the service in place of any server that runs; False where the supervisor does not run here."""
    if not supervisor.answers():
        return False
    if supervisor.is_running():
        run([*supervisor.stopping(), *supervisor.starting()])
    else:
        stop_any_server()
        run(supervisor.starting())
    return True


@command.command(short_help="Stop and remove it.", epilog="Example: serena-central service uninstall")
@json_option
def uninstall(*, as_json: bool) -> None:
    """Stop the service and remove its file."""
    supervisor = of_this_machine()
    installed = supervisor.file.exists()
    backup = None
    if installed and not _is_current(supervisor):  # it may hold what a person has added
        backup = Here.now().backups.keep(supervisor.file, supervisor.file.read_bytes())
    if installed and supervisor.answers():
        disable, *rest = supervisor.stopping()
        run([disable])
        supervisor.file.unlink()
        run(rest)
    elif installed:
        supervisor.file.unlink()
    if as_json:
        print_json({"file": str(supervisor.file), "removed": installed, "backup": str(backup) if backup else None})
    else:
        click.echo(f"Removed {supervisor.file}" if installed else f"No service is installed ({supervisor.file}).")
        if backup is not None:
            click.echo(f"  Backup: {backup}")


@command.command(short_help="Show its state.", epilog="Example: serena-central service status --json")
@json_option
def status(*, as_json: bool) -> None:
    """Show whether the service is installed, current and running, and whether the server answers."""
    supervisor = of_this_machine()
    installed = supervisor.file.exists()
    told = {
        "file": str(supervisor.file),
        "installed": installed,
        "current": installed and _is_current(supervisor),
        "running": installed and supervisor.is_running(),
        "url": _url(),
    }
    if as_json:
        print_json(told)
        return
    if not installed:
        click.echo("Not installed: serena-central service install")
    else:
        click.echo(f"Installed: {supervisor.file}")
        click.echo(f"Service: {'running' if told['running'] else 'not running'}")
        if not told["current"]:
            click.echo(
                "The file is outdated (program or PATH changed), or was edited. `serena-central service install` "
                "replaces it, and keeps a backup."
            )
    click.echo(f"Server: {told['url'] or 'does not answer'}")


def _is_current(supervisor: Supervisor) -> bool:
    """Whether the file is what would be written now."""
    wanted = supervisor.content(Program.of_this_installation(Places.of_user().logs / "start.log"))
    return supervisor.file.read_bytes() == wanted


def running_service() -> Supervisor | None:
    """The supervisor, if it runs the server."""
    try:
        supervisor = of_this_machine()
    except NotSupervised:
        return None
    return supervisor if supervisor.file.exists() and supervisor.is_running() else None


def _tell(commands: list[list[str]]) -> None:
    for one in commands:
        click.echo(f"  {' '.join(one)}")


def _url() -> str | None:
    try:
        remote = Remote()
        remote.get("/health")
    except NoServer:
        return None
    return remote.url
