"""`serena-central doctor`: what a support person would ask first, answered without a running server."""

import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import click

from serena_central.cli.output import json_option, print_json
from serena_central.cli.remote import NoServer, Refused, Remote
from serena_central.config.load import load_server_config
from serena_central.core.errors import ConfigError, ServerNotInstalled
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.locate import locate

PRIVATE = 0o077
"""Permission bits that others must not have on the token."""


class Check(NamedTuple):
    """One line of the report. `ok` None: for information."""

    name: str
    ok: bool | None
    says: str


@click.command(epilog="Exits with 1 when something that must work does not. Example: serena-central doctor --json")
@json_option
def command(*, as_json: bool) -> None:
    """Check the installation, settings, server and language servers."""
    places = Places.of_user()
    checks = [
        Check("version", None, f"serena-central {metadata.version('serena-central')}, Python {sys.version.split()[0]}"),
        Check("platform", None, f"{platform.system()} {platform.release()} {platform.machine()}"),
        Check("home", None, str(places.home)),
        _settings(),
        _token(places),
        _server(places),
        *(_language_server(spec, places) for spec in catalogue().servers.values()),
    ]
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        marks = {True: "ok     ", False: "FAILED ", None: "       "}
        for check in checks:
            click.echo(f"{marks[check.ok]}{check.name}: {check.says}")
    if any(check.ok is False for check in checks):
        sys.exit(1)


def _settings() -> Check:
    try:
        loaded = load_server_config({})
    except ConfigError as error:
        return Check("settings", False, str(error))
    problems = "; ".join(str(problem) for problem in loaded.problems)
    return Check("settings", True, problems or "no problems")


def _token(places: Places) -> Check:
    try:
        mode = places.token_file.stat().st_mode
    except FileNotFoundError:
        return Check("token", None, "none yet; the first `serena-central serve` makes it")
    if mode & PRIVATE:
        return Check("token", False, f"others may read {places.token_file}: chmod 600 it, or delete it and start anew")
    return Check("token", True, f"{places.token_file}, readable by its user alone")


def _server(places: Places) -> Check:
    try:
        remote = Remote(places)
        health = remote.get("/health")
    except NoServer as error:
        return Check("server", None, str(error))
    except Refused as error:
        return Check("server", False, str(error))
    return Check("server", True, f"version {health['version']} answers at {remote.url}")


def _language_server(spec: ServerSpec, places: Places) -> Check:
    name = f"{spec.name} ({', '.join(spec.languages)})"
    try:
        launch = locate(spec, Path("/"), places)
    except ServerNotInstalled as error:
        # Only what comes with the installation must be there.
        return Check(name, False if spec.bundled else None, f"missing; to get it: {error.how_to_get}")
    return Check(name, True, f"{launch.command[0]} {launch.version}".strip())
