"""`serena-central route`: which module of a super-repo some words mean, and why. Reads files; needs no server."""

from pathlib import Path

import click

from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, print_table
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from serena_central.projects.root_settings import RootSettings


@click.command(epilog='Example: serena-central route "Fix React component rendering"')
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--project",
    default=".",
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="The super-repo, or a folder in it.",
)
@json_option
def command(words: tuple[str, ...], *, project: Path, as_json: bool) -> None:
    """Show which module of the super-repo WORDS mean, and the points of all."""
    server = load_server_config({})
    repos = RootSettings(server, Places.of_user()).super_repos
    repo = repos.around(project.resolve())
    for problem in repos.problems_around(project.resolve()):
        click.echo(f"serena-central: {problem}", err=True)
    if repo is None:
        raise click.ClickException(
            f"{project.resolve()} is not in a super-repo; `serena-central superrepo init` creates one."
        )
    found = repo.routing(" ".join(words))
    if as_json:
        print_json(found)
    else:
        rows = [[one["module"], one["points"], ", ".join(one["reasons"])] for one in found["scores"]]
        print_table(["MODULE", "POINTS", "WHY"], rows, empty=f"No word matches; default_module: {found['module']}.")
