"""`serena-central config`: what is set, where each value comes from, and a template to start with."""

from pathlib import Path
from typing import Any

import click

from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, print_table
from serena_central.cli.trust import project_root
from serena_central.config.committed import place_of, write_ignore_file
from serena_central.config.describe import describe, template
from serena_central.config.layers import Loaded, Problem
from serena_central.config.load import (
    COMMITTED,
    CONFIG_NAME,
    Sources,
    load_server_config,
    project_files,
)
from serena_central.config.settings import ProjectSettings, ServerSettings, SharedSettings
from serena_central.core.places import Places
from serena_central.files.atomic import write_whole
from serena_central.projects.root_settings import RootSettings
from serena_central.standalone.private import as_user


@click.group(epilog="Example: serena-central config show --origins")
def command() -> None:
    """Show or create the settings."""


@command.command(epilog="Example: serena-central config show --origins --project .")
@click.option("--origins", is_flag=True, help="Show where each value comes from.")
@click.option(
    "--project", type=GivenPath(exists=True, file_okay=False, path_type=Path), help="Show the settings of a project."
)
@json_option
def show(*, origins: bool, project: Path | None, as_json: bool) -> None:
    """Show the settings that count, of the server or of one project."""
    server = load_server_config({})
    loaded: Loaded[Any] = RootSettings(server, Places.of_user()).read(project.resolve()) if project else server
    rows = describe(loaded)
    if as_json:
        print_json(
            {
                "settings": [row._asdict() for row in rows],
                "problems": [str(problem) for problem in loaded.problems],
            }
        )
        return
    headers = ["KEY", "VALUE", "ORIGIN"] if origins else ["KEY", "VALUE"]
    print_table(headers, [[row.key, row.value, row.origin][: len(headers)] for row in rows], empty="No settings.")
    _print_problems(loaded.problems)


def _print_problems(problems: list[Problem]) -> None:
    for problem in problems:
        click.echo(f"serena-central: {problem}", err=True)


@command.command(epilog="Example: serena-central config init --project .")
@click.option(
    "--project", type=GivenPath(exists=True, file_okay=False, path_type=Path), help="Create it for a project."
)
@click.option(
    "--shared", is_flag=True, help="Create .claude/.serena/serena_config.yml, for a repository and its modules."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def init(*, project: Path | None, shared: bool, force: bool, as_json: bool) -> None:
    """Write a commented template: every key with its default and meaning."""
    if shared and project is None:
        raise click.UsageError("--shared requires --project, the repository that will contain the file.")
    model, path = _template_of(project, shared=shared)
    if path.exists() and not force:
        raise click.ClickException(f"{path} already exists; --force overwrites it.")
    with as_user():
        place = place_of(path, project_root(project)) if project else path.resolve()
        write_whole(place, template(model).encode(), shared=True)
        ignore = write_ignore_file(path.parent) if project else None
    written = [str(file) for file in (path, ignore) if file]
    if as_json:
        print_json({"written": written})
    else:
        click.echo("\n".join(f"Wrote {file}" for file in written))


def _template_of(project: Path | None, *, shared: bool) -> tuple[type[SharedSettings], Path]:
    if project is None:
        return ServerSettings, Sources().user
    root = project_root(project)
    return (SharedSettings, root / COMMITTED / CONFIG_NAME) if shared else (ProjectSettings, project_files(root)[0])


@command.command("token-file", epilog='Example: cat "$(serena-central config token-file)"')
@json_option
def token_file(*, as_json: bool) -> None:
    """Print the path of the token that clients must send."""
    file = Places.of_user().token_file
    if as_json:
        print_json({"token_file": str(file)})
    else:
        click.echo(file)
