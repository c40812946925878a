"""`serena-central superrepo`: what a super-repo's project.yml could say, from what its files say of its modules."""

from pathlib import Path

import click
import msgspec

from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, say
from serena_central.cli.trust import project_root
from serena_central.config.committed import place_of, write_ignore_file
from serena_central.files.atomic import write_whole
from serena_central.projects.superrepo.proposal import PROJECT_FILE, propose
from serena_central.standalone.private import as_user


@click.group(name="superrepo", epilog="Example: serena-central superrepo init --dry-run")
def command() -> None:
    """Repositories that hold many modules."""


@command.command(epilog="Example: serena-central superrepo init --dry-run ~/src/platform")
@click.argument("folder", default=".", type=GivenPath(exists=True, file_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Print the proposal without writing it.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def init(folder: Path, *, dry_run: bool, force: bool, as_json: bool) -> None:
    """Propose FOLDER's .serena/project.yml, from submodules, workspaces and packages in it, for you to edit."""
    root = project_root(folder)
    file = root / PROJECT_FILE
    if file.exists() and not (force or dry_run):
        raise click.ClickException(f"{file} already exists; --force overwrites it, --dry-run shows the proposal.")
    proposal = propose(root)
    if not proposal.modules:
        raise click.ClickException(
            f"No modules found in {root}: there is no .gitmodules, go.work or workspace of npm, pnpm or Cargo, "
            "and no repository or package below it (go.mod, Cargo.toml, pyproject.toml, package.json and similar)."
            f"\n{proposal.why_left_out('Not included: ')}`serena-central config init --project` writes a template."
        )
    if not dry_run:
        with as_user():
            write_whole(place_of(file, root), proposal.as_yaml().encode(), shared=True)
            write_ignore_file(file.parent)
    if as_json:
        print_json({"file": str(file), "written": not dry_run, **msgspec.to_builtins(proposal)})
    elif dry_run:
        say(proposal.as_yaml(), nl=False)
    else:
        say(f"Wrote {file} with {len(proposal.modules)} modules. Please edit it.")
        if proposal.left_out:
            say(f"Not included:\n{proposal.why_left_out('  ')}", nl=False)
