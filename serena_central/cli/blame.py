"""`serena-central blame FILE:LINE`: which conversation wrote a line, and what its session cost.

It reads the transcripts itself: no server has to run.
"""

from datetime import datetime
from pathlib import Path

import click
import msgspec

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import check_is_reachable
from serena_central.cli.output import json_option, print_json, say
from serena_central.config.load import load_server_config
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.core.words import counted, whole_number
from serena_central.editing.plan import lines_of
from serena_central.projects.editing.line_blame import edit_of_line
from serena_central.store.edit_log import LoggedEdit, read_edits
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.blame import Author, author_of
from serena_central.transcripts.counting import omissions, update
from serena_central.transcripts.edit_usage import EditUsage, by_edit
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import UsageRow
from serena_central.transcripts.roots import all_roots


@click.command(epilog="Example: serena-central blame src/cart.py:12")
@click.argument("place", metavar="FILE:LINE")
@json_option
def command(*, place: str, as_json: bool) -> None:
    """Show which conversation of a coding agent wrote a line: session, prompt, time and the session's cost."""
    path, number, lines = _line(place)
    text = lines[number - 1].rstrip("\r\n")
    settings = load_server_config({}).value
    places = Places.of_user()
    places.create()
    roots = all_roots(places.transcripts)
    with UsageStore(places.usage_file) as store:
        done = update(store, roots, Prices(settings.prices))
        edit = _edit(places, settings.database_url, path, number, "".join(lines))
        if edit is not None:
            [made] = by_edit(store, roots, [edit], prompts=True)
            _show_edit(made, edit, _cost(store, made.session), text, as_json=as_json)
            return
        found = author_of(roots, path, text, store.files())
        if found is not None:
            _show_call(found, _cost(store, found.session), text, as_json=as_json)
            return
        lacking = omissions(store, done)
    if as_json:
        print_json(None)
    say(
        "No edit of this server and no tool call in a transcript on this machine wrote this line. A person, a "
        "formatter, a command or a conversation whose transcript was deleted may have.",
        err=True,
    )
    for line in lacking:
        say(line, err=True)
    raise Unsuccessful


def _edit(places: Places, url: str | None, path: Path, number: int, content: str) -> LoggedEdit | None:
    """The edit of this server that wrote the line, whatever project it was made in."""
    for root in path.parents:
        name = path.relative_to(root).as_posix()
        edits = read_edits(places.database, url, file=(str(root), name))
        found = edit_of_line(content, number - 1, name, edits)
        if found is not None:
            return found
    return None


def _cost(store: UsageStore, session: str) -> UsageRow:
    cost = UsageRow(key=session)
    for total in store.totals(session=session) if session else ():
        cost.add(total)
    return cost


def _show_edit(made: EditUsage, edit: LoggedEdit, session: UsageRow, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**msgspec.to_builtins(made), "by": "edit", "session_cost": session.cost, "line": text})
        return
    at = datetime.fromtimestamp(made.at).astimezone().isoformat(timespec="seconds")
    conversation = f"{made.client} session {made.session}" if made.session else f"{edit.client}, no transcript found"
    say(f"{at}  {conversation}")
    say(f"edit    {made.key} by {made.tool}" + (f" of {made.symbol}" if made.symbol else ""))
    if made.session:
        say(f"prompt  {made.prompt or '(none)'}")
        say(f"cost    {_dollars(made)} for the edit, {_dollars(session)} for the session")


def _show_call(found: Author, session: UsageRow, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**msgspec.to_builtins(found), "by": "transcript", "session_cost": session.cost, "line": text})
        return
    say(f"{found.at}  {found.client} session {found.session}" + (f", agent {found.agent}" if found.agent else ""))
    say(f"tool    {found.tool} ({found.call})")
    say(f"prompt  {found.prompt or '(none)'}")
    say(f"cost    {_dollars(session)} for the session")
    say(f"in      {found.file}")


def _dollars(row: UsageRow) -> str:
    return f"${row.cost:.4f}{'+' if row.unpriced else ''}"


def _line(place: str) -> tuple[Path, int, list[str]]:
    """The file, the line's number and all lines with their ends.

    Raises:
        InvalidArguments
    """
    name, _, number = place.rpartition(":")
    wanted = whole_number(number)
    if not name or not wanted:
        raise InvalidArguments(f"{place} is not FILE:LINE, as src/cart.py:12.")
    check_is_reachable(Path(name))
    path = Path(name).resolve()
    if path.exists() and not path.is_file():
        raise InvalidArguments(f"{path} is not a file.")
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = lines_of(file.read())
    except OSError as error:
        raise InvalidArguments(f"{path}: {error.strerror or error}") from error
    if wanted > len(lines):
        raise InvalidArguments(f"{path} has {counted(len(lines), 'line')}.")
    if not lines[wanted - 1].strip():
        raise InvalidArguments("The line is empty: nothing tells who wrote it.")
    return path, wanted, lines
