"""`serena-central warm`: language servers started and ready, indexes filled, before an agent asks."""

from pathlib import Path
from typing import Any

import click

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, print_table, printable, say
from serena_central.cli.progress import Progress
from serena_central.cli.remote import Remote

WARM_S = 3600.0
"""Longest silence of the server between two lines."""


@click.command(epilog="Example: serena-central warm --project ~/src/platform --modules api,web")
@click.option(
    "--project",
    default=".",
    type=GivenPath(exists=True, file_okay=False, path_type=Path),
    help="A project, or a super-repo with all its modules.",
)
@click.option("--modules", default="", help="Only these modules of the super-repo, comma-separated.")
@click.option("--background", is_flag=True, help="Return immediately; warmup-status.json reports the outcome.")
@json_option
def command(project: Path, *, modules: str, background: bool, as_json: bool) -> None:
    """Start the language servers of a project or super-repo, wait until they are ready, and fill the index."""
    names = [name.strip() for name in modules.split(",") if name.strip()]
    asked = {"folder": str(project.resolve()), "modules": names, "background": background}
    remote = Remote(answer_timeout_s=WARM_S)
    if background:
        begun: dict[str, list[str]] = remote.post("/api/v1/warm", asked)
        if as_json:
            print_json(begun)
        else:
            say(f"Warming up {len(begun['started'])} in the background: {', '.join(begun['names'])}")
        return
    with Progress() as progress:
        warmed: list[dict[str, Any]] = remote.followed("/api/v1/warm", asked, progress.says)["modules"]
    if as_json:
        print_json({"modules": warmed})
    else:
        rows = [
            [
                one["project"],
                one["language"] or "-",
                f"{one['duration_seconds']:.1f} s",
                "warm" if one["success"] else "failed",
                printable(one["error"] or "")[:200],
            ]
            for one in warmed
        ]
        print_table(["PROJECT", "LANGUAGE", "TOOK", "STATE", "NOTE"], rows, empty="Nothing to warm up.")
    if not all(one["success"] for one in warmed):
        raise Unsuccessful
