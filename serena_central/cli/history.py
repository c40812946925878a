"""`serena-central history`: which files were edited, by whom, and how much."""

import click

from serena_central.cli.output import age, json_option, print_json, print_table
from serena_central.cli.remote import Remote


@click.command(epilog="Example: serena-central history --project shop -n 50")
@click.option("--session", help="Only edits of this session.")
@click.option("--project", help="Only edits in this project (name or root).")
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of edits.")
@json_option
def command(*, session: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """List edits, the newest first."""
    edits = Remote().get("/api/v1/edits", session=session, project=project, limit=limit)["edits"]
    if as_json:
        print_json(edits)
        return
    rows = [
        [
            one["id"],
            age(one["at"]),
            one["session"],
            one["client"],
            one["tool"] + (f" of {one['undoes']}" if one["undoes"] else ""),
            one["project_root"],
            ", ".join(file.get("moved_to") or file["path"] for file in one["files"]),
            f"+{one['lines_added']} -{one['lines_removed']}",
        ]
        for one in edits
    ]
    headers = ["EDIT", "AGE", "SESSION", "CLIENT", "TOOL", "PROJECT", "FILES", "LINES"]
    print_table(headers, rows, empty="No edits yet." if session is None and project is None else "No edits of these.")
