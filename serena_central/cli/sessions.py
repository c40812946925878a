"""`serena-central sessions`: who is connected, and doing what."""

import click

from serena_central.cli.output import age, json_option, print_json, print_table
from serena_central.cli.remote import Remote


@click.command(epilog="Example: serena-central sessions --state active")
@click.option("--state", help="Only sessions in this state (connected, active, idle, disconnected, terminated).")
@json_option
def command(*, state: str | None, as_json: bool) -> None:
    """List sessions: client, project, state, calls."""
    sessions = Remote().whole("/api/v1/sessions", "sessions", state=state)["sessions"]
    if as_json:
        print_json(sessions)
        return
    rows = [
        [
            one["session_id"],
            f"{one['client_name']} {one['client_version']}".strip(),
            one["state"],
            one["project_name"] or "-",
            one["tool_call_count"],
            age(one["last_activity"]),
            age(one["created_at"]),
        ]
        for one in sessions
    ]
    headers = ["SESSION", "CLIENT", "STATE", "PROJECT", "CALLS", "LAST CALL", "AGE"]
    nobody = "No sessions. Connect a client to the URL that `serena-central status` shows."
    print_table(headers, rows, empty=nobody if state is None else f"No sessions are {state}.")
