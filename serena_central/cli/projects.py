"""`serena-central projects`: what is known, open and indexed."""

import click

from serena_central.cli.output import age, json_option, print_json, print_table
from serena_central.cli.remote import Remote


@click.command(epilog="Example: serena-central projects --json")
@json_option
def command(*, as_json: bool) -> None:
    """List projects: root, sessions, files, how far they are indexed."""
    projects = Remote().whole("/api/v1/projects", "projects")["projects"]
    if as_json:
        print_json(projects)
        return
    rows = [
        [
            one["name"],
            one["root"],
            "open" if one["open"] else "closed",
            one["sessions"],
            one["files"],
            f"{one['indexed']} of {one['indexed'] + one['pending']}",
            age(one["last_used"]),
        ]
        for one in projects
    ]
    headers = ["PROJECT", "ROOT", "STATE", "SESSIONS", "FILES", "INDEXED", "LAST USED"]
    print_table(headers, rows, empty="No projects yet. `serena-central call list_dir --project DIR` opens one.")
