"""`serena-central logs`: the newest records of the server's log, and new ones as they come. Needs no running server."""

import time

import click

from serena_central.cli.output import json_text, printable, say
from serena_central.core.errors import SerenaCentralError
from serena_central.core.log_lines import Follower, Record, Wanted, last_records
from serena_central.core.places import Places

POLL_S = 0.2


@click.command(epilog="Examples: serena-central logs -f --level warning    serena-central logs -n 500 --session s-1")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@click.option(
    "-n", "count", type=click.IntRange(0), default=50, show_default=True, help="Number of newest records to show."
)
@click.option("--session", help="Only records of the session with this id (serena-central sessions).")
@click.option(
    "--level", type=click.Choice(["debug", "info", "warning", "error"]), help="Only records of this level or higher."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def command(*, follow: bool, count: int, session: str | None, level: str | None, as_json: bool) -> None:
    """Show the server's log."""
    file = Places.of_user().log_file
    if not file.exists() and not follow:
        raise SerenaCentralError(f"There is no log yet ({file}): no server has run with this data folder.")
    wanted = Wanted(level, session)
    follower = Follower(file)  # first: what comes while we print is not lost
    for record in last_records(file, count, wanted):
        _print(record, as_json=as_json)
    while follow:
        for record in follower.added():
            if wanted.holds(record):
                _print(record, as_json=as_json)
        time.sleep(POLL_S)


def _print(record: Record, *, as_json: bool) -> None:
    if as_json:
        said = {"time": record.time, "level": record.level, "message": record.message, **record.keys}
        say(json_text(said | {"lines": record.lines}))
    else:
        click.echo("\n".join(printable(line) for line in record.lines.split("\n")))
