"""`serena-central validate`: unused symbols and broken references, with an exit code for hooks and gates."""

import json
from pathlib import Path
from typing import Any

import click

from serena_central.cli.analysis_requests import ask_about, seconds_option
from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, say
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.files.revisions import changed_since
from serena_central.projects.root_settings import RootSettings

TOOLS = {"broken": "check_references", "unused": "find_unused_symbols"}
"""Kind of finding, as the tool's answer names it → the tool."""

NOUNS = {"broken": "broken reference", "unused": "unused symbol"}

EXAMINED = {"broken": "file", "unused": "symbol"}


@click.command(
    epilog="Exits with 1 on findings, or if not everything could be checked in time.\n\n"
    "Example, as a git hook: serena-central validate --broken-refs --since HEAD",
)
@click.option("--unused", is_flag=True, help="Find functions, methods and types without references.")
@click.option("--broken-refs", "broken", is_flag=True, help="Find unresolved references.")
@click.option(
    "--possible", is_flag=True, help="Also list possible broken references, which the server may just not see."
)
@click.option(
    "--since",
    metavar="REV",
    help="Only findings that involve files changed since this git revision, which is the baseline.",
)
@click.option("--project", default=".", type=GivenPath(exists=True, file_okay=False, path_type=Path), show_default=True)
@seconds_option
@json_option
def command(
    *, unused: bool, broken: bool, possible: bool, since: str | None, project: Path, seconds: float, as_json: bool
) -> None:
    """Look for unused symbols and broken references; without either option for both."""
    root = project.resolve()
    paths = _changed(root, since) if since else []
    answers: dict[str, Any] = {"unused": [], "broken": []}
    notes: list[str] = []
    failed = 0
    not_examined: dict[str, int] = {}
    wanted = {"broken": broken or not unused, "unused": unused or not broken}
    for kind, tool in TOOLS.items():
        if wanted[kind] and (paths or not since):
            more = {"possible": possible, "since": since or ""} if kind == "broken" else {}
            arguments = {"paths": paths, "seconds": seconds, **more}
            answer = _ask(tool, root, arguments, notes)
            answers[kind] = answer[kind]
            failed += answer.get("failed", 0)
            if "not_examined" in answer:
                not_examined[kind] = answer["not_examined"]
    if as_json:
        left = {"not_checked": not_examined.get("broken", 0), "not_examined": not_examined.get("unused", 0)}
        print_json({**answers, "failed": failed, **left, "notes": notes})
    else:
        _print(answers, [kind for kind in TOOLS if wanted[kind]], notes)
    if failed:
        click.echo(f"serena-central: {counted(failed, 'file')} could not be checked.", err=True)
    for kind, count in not_examined.items():
        said = f"{counted(count, EXAMINED[kind])} not examined in time. Run again to resume."
        click.echo(f"serena-central: {said}", err=True)
    unused_for_sure = any(one["confidence"] == "high" for one in answers["unused"])
    if failed or not_examined or unused_for_sure or any(map(_counts, answers["broken"])):
        raise Unsuccessful


def _counts(one: dict[str, Any]) -> bool:
    """Whether a broken reference is a finding for gates."""
    return one["certainty"] == "certain" or one["new"]


def _changed(root: Path, since: str) -> list[str]:
    trusted = RootSettings(load_server_config({}), Places.of_user()).trust.is_trusted(root)
    return [one.absolute for one in changed_since(root, since, trusted=trusted)]


def _ask(tool: str, root: Path, arguments: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    blocks = ask_about(root, tool, arguments)
    notes += [line for block in blocks[1:] for line in block.splitlines() if line not in notes]
    try:
        return json.loads(blocks[0])
    except ValueError as error:
        raise click.ClickException(f"The answer is too long: {blocks[0][:300]}") from error


def _print(answers: dict[str, Any], kinds: list[str], notes: list[str]) -> None:
    for one in answers["broken"]:
        possible = "" if _counts(one) else "possible "
        say(f"{one['path']}:{one['line'] + 1}: {possible}{one['what']}: {one['message']}")
    for one in answers["unused"]:
        click.echo(
            f"{one['relative_path']}:{one['line'] + 1}: unused {one['kind'].lower()} {one['name_path']} "
            f"({one['confidence']}: {one['reason']})"
        )
    for note in notes:
        say(note, err=True)
    found = [counted(len(answers[kind]), NOUNS[kind]) for kind in kinds]
    click.echo(", ".join(found), err=True)
