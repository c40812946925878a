"""`serena-central usage`: tokens and cost from the transcripts that coding agents keep on this machine.

It reads the transcripts itself: no server has to run.
"""

import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from serena_central.cli.given import Finite
from serena_central.cli.output import json_option, print_json, print_table, say
from serena_central.cli.usage_of_edits import EDIT_GROUPS, show_edits
from serena_central.config.load import load_server_config
from serena_central.config.settings import ServerSettings
from serena_central.core.decoding import from_json
from serena_central.core.places import Places
from serena_central.core.quoting import escaped
from serena_central.core.words import counted, whole_number
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.audit import Audit
from serena_central.transcripts.budgets import midnight, overruns
from serena_central.transcripts.counting import Update, omissions, update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import GROUPS, Block, Report, UsageRow, report
from serena_central.transcripts.roots import Root, all_roots

HEADERS = ["REQUESTS", "INPUT", "OUTPUT", "CACHE WRITE", "CACHE READ", "COST"]


@click.group(
    invoke_without_command=True,
    epilog="Examples: serena-central usage --by model --since 2026-11-01; serena-central usage --audit",
)
@click.option(
    "--by", type=click.Choice((*GROUPS, *EDIT_GROUPS)), default="day", show_default=True, help="What one row is."
)
@click.option("--since", metavar="DATE", help="Only since this day (YYYY-MM-DD), or the last days (7d).")
@click.option("--audit", is_flag=True, help="List every row of the transcripts that does not count, and why.")
@json_option
@click.pass_context
def command(context: click.Context, *, by: Any, since: str | None, audit: bool, as_json: bool) -> None:
    """Show tokens and cost of coding agents.

    Read are the transcripts of Claude Code, Codex, Gemini CLI and of tasks by the messages API; what was read once is
    kept when they are deleted.
    Edits and symbols are those that this server changed, with the cost of the conversations that asked for it.
    """
    given = [
        f"--{name.removeprefix('as_')}"
        for name in ("by", "since", "audit", "as_json")
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if context.invoked_subcommand is not None:
        if given:
            raise click.UsageError(f"{context.invoked_subcommand} does not take {', '.join(given)}.")
        return
    if audit and (given := [one for one in given if one in ("--by", "--since")]):
        raise click.UsageError(f"--audit reads all that there is: it does not take {', '.join(given)}.")
    now = datetime.now(UTC)
    start = start_of(since, now)
    if audit:
        _audit(as_json=as_json)
        return
    settings = load_server_config({}).value
    if by in EDIT_GROUPS:
        show_edits(by, settings, start, as_json=as_json)
        return
    with _store() as store:
        done = update(store, _roots(), Prices(settings.prices))
        found = report(store, by, since=start, now=now)
        notes = [*_notes(found), *omissions(store, done), *_warnings(store, settings, now)]
    if as_json:
        print_json(_json(found, done, notes))
        return
    _print(found)
    for line in notes:
        say(line, err=True)


@command.command(epilog="Example: serena-central usage watch --interval 10")
@click.option("--interval", type=Finite(1, 3600), default=5, show_default=True, help="Seconds between lines.")
@click.option("-n", "count", type=click.IntRange(1), help="End after this many lines.")
def watch(*, interval: float, count: int | None) -> None:
    """Follow the usage of the running 5-hour block until Ctrl-C."""
    settings = load_server_config({}).value
    prices = Prices(settings.prices)
    printed = 0
    said: list[str] = []
    with _store() as store:
        while True:
            now = datetime.now(UTC)
            lacking = omissions(store, update(store, _roots(), prices))
            for line in lacking if lacking != said else ():
                say(line, err=True)
            said = lacking
            blocks = report(store, "block", since=now - timedelta(hours=12), now=now).rows
            say(f"{now.astimezone():%H:%M:%S}  {_state(blocks, _today(store, now))}")
            for line in _warnings(store, settings, now):
                say(line, err=True)
            printed += 1
            if printed == count:
                return
            time.sleep(interval)


@command.command("status-line", epilog='Example, in settings.json of Claude Code: "statusLine": {"type": "command", '
    '"command": "serena-central usage status-line"}')  # fmt: skip
def status_line() -> None:
    """Print one line for Claude Code's status line: model, session, today, 5-hour block.

    Claude Code writes what it knows of the session to stdin, as JSON.
    """
    given = _of_stdin()
    settings = load_server_config({}).value
    now = datetime.now(UTC)
    with _store() as store:
        done = update(store, _roots(), Prices(settings.prices))
        parts = [given.model.display_name] if given.model and given.model.display_name else []
        if given.session_id:
            session = UsageRow(key="session")
            for total in store.totals(session=given.session_id):
                session.add(total)
            parts.append(f"session {_cost(session)}")
        blocks = report(store, "block", since=now - timedelta(hours=12), now=now).rows
        parts.append(_state(blocks, _today(store, now)))
        parts += _warnings(store, settings, now)
        if done.unreadable:
            what = counted(len(done.unreadable), "file or folder", "files or folders")
            parts.append(f"{what} not read: serena-central usage")
    say(escaped(" | ".join(parts)))


class _Model(msgspec.Struct):
    display_name: str | None = None


class _StatusInput(msgspec.Struct):
    session_id: str | None = None
    model: _Model | None = None


def _of_stdin() -> _StatusInput:
    if sys.stdin.isatty():  # a person tries it
        return _StatusInput()
    try:
        return from_json(sys.stdin.buffer.read(1_000_000), _StatusInput)
    except msgspec.DecodeError:
        return _StatusInput()


def _roots() -> list[Root]:
    return all_roots(Places.of_user().transcripts)


def _store() -> UsageStore:
    places = Places.of_user()
    places.create()
    return UsageStore(places.usage_file)


def start_of(since: str | None, now: datetime) -> datetime | None:
    """The beginning of a day that an option names, in the machine's time zone.

    Raises:
        click.BadParameter
    """
    if since is None:
        return None
    days = whole_number(since.removesuffix("d")) if since.endswith("d") else None
    if days is not None and 1 <= days <= 36_500:
        return midnight(now, days_ago=days - 1)
    try:
        return datetime.strptime(since, "%Y-%m-%d").astimezone()
    except ValueError:
        raise click.BadParameter("a day as 2026-11-01, or a number of days as 7d", param_hint="--since") from None


def _today(store: UsageStore, now: datetime) -> UsageRow:
    return report(store, "day", since=midnight(now), now=now).total


def _warnings(store: UsageStore, settings: ServerSettings, now: datetime) -> list[str]:
    """Budgets that are used up."""
    if not settings.usage_budgets:
        return []
    today = report(store, "project", since=midnight(now), now=now)
    return [str(one) for one in overruns(settings.usage_budgets, today.total, list(today.rows))]


def _state(blocks: Any, today: UsageRow) -> str:
    parts = [f"today {_cost(today)}"]
    running = next((one for one in blocks if isinstance(one, Block) and one.running), None)
    if running is not None:
        left = max(running.ends_at - time.time(), 0)
        parts.append(f"block {_cost(running)}, {left // 3600:.0f} h {left % 3600 // 60:.0f} min left")
        if running.forecast is not None:
            parts.append(f"${running.cost_per_hour:.2f}/h, forecast ${running.forecast:.2f}")
    return " | ".join(parts)


def _cost(row: UsageRow) -> str:
    return f"${row.cost:.2f}" + ("+" if row.unpriced else "")


def _print(found: Report) -> None:
    empty = "No usage found: no transcripts of clients or `messages` tasks on this machine, or none in this time."
    if found.by in ("tool", "upstream"):
        rows = [[row.key, row.calls, row.failed, _exact(row)] for row in found.rows]
        print_table([found.by.upper(), "CALLS", "FAILED", "COST OF REQUESTS"], rows, empty=empty)
        return
    table = [_cells(row) for row in (*found.rows, found.total)] if found.rows else []
    print_table([found.by.upper(), *HEADERS], table, empty=empty)
    for row in found.rows:
        if isinstance(row, Block) and row.running and row.forecast is not None:
            say(
                f"The block {row.key} is running: ${row.cost_per_hour:.2f} an hour, {row.tokens_per_minute:.0f} tokens "
                f"a minute; ${row.forecast:.2f} at its end if this goes on."
            )


def _cells(row: UsageRow) -> list[object]:
    counts = (row.requests, row.input, row.output, row.cache_write, row.cache_read)
    return [row.key, *(f"{count:,}" for count in counts), _exact(row)]


def _exact(row: UsageRow) -> str:
    return f"{row.cost:.4f}" + ("+" if row.unpriced else "")


def _notes(found: Report) -> list[str]:
    if not found.unknown_models:
        return []
    models = ", ".join(
        f"{escaped(name) or '(no name)'}: {counted(count, 'request')}"
        for name, count in sorted(found.unknown_models.items())
    )
    return [f"The cost lacks models without known prices ({models}). Set theirs under prices in the settings."]


def _json(found: Report, done: Update, notes: list[str]) -> dict[str, Any]:
    rows = [_row(row) for row in found.rows]
    return {
        "by": found.by,
        "rows": rows,
        "total": _row(found.total),
        "unknown_models": found.unknown_models,
        "notes": notes,
        "read": {"files": done.files, "bytes": done.bytes_read},
    }


def _row(row: UsageRow) -> dict[str, Any]:
    return {**msgspec.to_builtins(row), "tokens": row.tokens}


def _audit(*, as_json: bool) -> None:
    audit = Audit(_roots())
    reasons: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    for row in audit.rows():
        reasons[row.reason] += 1
        if as_json:
            listed.append(msgspec.to_builtins(row))
        else:
            say(escaped(f"{row.file}:{row.line}: {row.reason}" + (f" ({row.what})" if row.what else "")))
    summary = {
        "requests": len(audit.requests),
        "dropped": dict(reasons),
        "unreadable": audit.unreadable,
        "other_kinds": {client: dict(kinds) for client, kinds in audit.other_kinds.items() if kinds},
    }
    if as_json:
        print_json({"rows": listed, **summary})
        return
    say(f"{counted(len(audit.requests), 'request')} counted.", err=True)
    for reason, count in reasons.most_common():
        say(f"{counted(count, 'row')} not counted: {reason}.", err=True)
    for client, kinds in audit.other_kinds.items():
        if kinds:
            named = ", ".join(f"{escaped(kind)} {count}" for kind, count in kinds.most_common())
            say(f"Nothing is read from these records of {client}: {named}.", err=True)
    for one in audit.unreadable:
        say(f"Not read: {one}", err=True)
