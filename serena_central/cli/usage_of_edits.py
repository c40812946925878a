"""`serena-central usage --by edit|symbol`: what the edits of this server cost, and which conversations made them.

It reads the server's database and the transcripts itself: no server has to run.
"""

from datetime import datetime

import msgspec

from serena_central.cli.output import print_json, print_table, say
from serena_central.config.settings import ServerSettings
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.store.edit_log import read_edits
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.counting import omissions, update
from serena_central.transcripts.edit_usage import EditUsage, by_edit, by_symbol, total_of
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import UsageRow
from serena_central.transcripts.roots import all_roots

EDIT_GROUPS = ("edit", "symbol")


def show_edits(by: str, settings: ServerSettings, since: datetime | None, *, as_json: bool) -> None:
    """Prints the edits since a time with their cost, one by one or by symbol.

    Raises:
        StoreError, InvalidArguments
    """
    places = Places.of_user()
    places.create()
    edits = read_edits(places.database, settings.database_url, since=since.timestamp() if since else 0.0)
    roots = all_roots(places.transcripts)
    with UsageStore(places.usage_file) as store:
        done = update(store, roots, Prices(settings.prices))
        found = by_edit(store, roots, edits, prompts=as_json and by == "edit")
        lacking = omissions(store, done)
    rows = found if by == "edit" else by_symbol(found)
    total = total_of(found)
    notes = [*_notes(found), *lacking]
    if as_json:
        print_json(
            {
                "by": by,
                "rows": [msgspec.to_builtins(row) for row in rows],
                "total": msgspec.to_builtins(total),
                "notes": notes,
            }
        )
        return
    _print(by, rows, total)
    for line in notes:
        say(line, err=True)


def _print(by: str, rows: list[EditUsage] | list[UsageRow], total: UsageRow) -> None:
    empty = "No edits: this server has made none, or none in this time."
    if by == "symbol":
        table = [[one.key, one.calls, one.failed, _cost(one)] for one in (*rows, total)] if rows else []
        print_table(["SYMBOL", "EDITS", "UNDONE", "COST"], table, empty=empty)
        return
    table = [
        [one.key, _time(one.at), one.tool, one.symbol, ", ".join(one.files[:2]), one.session, one.undone_by, _cost(one)]
        for one in rows
        if isinstance(one, EditUsage)
    ]
    if table:
        table.append(["total", "", "", "", "", "", "", _cost(total)])
    print_table(["EDIT", "TIME", "TOOL", "SYMBOL", "FILES", "SESSION", "UNDONE BY", "COST"], table, empty=empty)


def _notes(edits: list[EditUsage]) -> list[str]:
    unknown = sum(one.unpriced for one in edits)
    if not unknown:
        return []
    why = "no transcript tells which request asked for it, or the price of its model is unknown"
    return [f"The cost of {counted(unknown, 'edit')} is not known: {why}."]


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"


def _cost(row: UsageRow) -> str:
    return f"{row.cost:.4f}" + ("+" if row.unpriced else "")
