"""`serena-central blame FILE:LINE`: which conversation wrote a line, and what its session cost.

It reads the transcripts itself: no server has to run.
"""

import os
from pathlib import Path

import click
import msgspec

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.output import json_option, print_json, say
from serena_central.config.load import load_server_config
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.blame import author_of
from serena_central.transcripts.counting import roots_of, update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import UsageRow


@click.command(epilog="Example: serena-central blame src/cart.py:12")
@click.argument("place", metavar="FILE:LINE")
@json_option
def command(*, place: str, as_json: bool) -> None:
    """Show which conversation of a coding agent wrote a line: session, prompt, time and the session's cost."""
    path, text = _line(place)
    roots = roots_of(Path.home(), os.environ)
    found = author_of(roots, path, text)
    if found is None:
        if as_json:
            print_json(None)
        say(
            "No transcript on this machine has a tool call that wrote this line. A person, a formatter, a command or a "
            "conversation whose transcript was deleted may have.",
            err=True,
        )
        raise Unsuccessful
    places = Places.of_user()
    places.create()
    cost = UsageRow(key=found.session)
    with UsageStore(places.usage_file) as store:
        update(store, roots, Prices(load_server_config({}).value.prices))
        for total in store.totals(session=found.session):
            cost.add(total)
    if as_json:
        print_json({**msgspec.to_builtins(found), "session_cost": cost.cost, "line": text})
        return
    say(f"{found.at}  {found.client} session {found.session}" + (f", agent {found.agent}" if found.agent else ""))
    say(f"tool    {found.tool} ({found.call})")
    say(f"prompt  {found.prompt or '(none)'}")
    say(f"cost    ${cost.cost:.4f}{'+' if cost.unpriced else ''} for the session")
    say(f"in      {found.file}")


def _line(place: str) -> tuple[Path, str]:
    """The file and the text of the line.

    Raises:
        InvalidArguments
    """
    name, _, number = place.rpartition(":")
    if not name or not number.isdecimal() or int(number) < 1:
        raise InvalidArguments(f"{place} is not FILE:LINE, as src/cart.py:12.")
    path = Path(name).absolute()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InvalidArguments(f"{path}: {error.strerror or error}") from error
    if int(number) > len(lines):
        raise InvalidArguments(f"{path} has {len(lines)} lines.")
    text = lines[int(number) - 1]
    if not text.strip():
        raise InvalidArguments("The line is empty: nothing tells who wrote it.")
    return path, text
