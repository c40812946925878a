"""`serena-central transcripts`: sessions of coding agents on this machine, how to resume them, and what is kept.

It reads the files itself: no server has to run.
"""

import os
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from serena_central.claude_config.effective import load
from serena_central.cli.output import age, json_option, print_json, print_table, say
from serena_central.config.load import load_server_config
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts import cleanup
from serena_central.transcripts.counting import omissions, update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reader import RESUME, sessions
from serena_central.transcripts.reports import SessionUsage, is_of, session_usage
from serena_central.transcripts.resuming import resume as resume_own
from serena_central.transcripts.roots import all_roots, roots_of


@click.group(epilog="Example: serena-central transcripts list --client claude-code -n 5")
def command() -> None:
    """List sessions of coding agents, resume them, and keep or delete transcripts."""


@command.command("list", epilog="Example: serena-central transcripts list --project shop")
@click.option(
    "--client", help="Only sessions of this client: claude-code, codex, gemini; messages: tasks of that runner."
)
@click.option("--project", help="Only sessions in this project, by root or the root's name.")
@click.option("-n", "limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Number of sessions.")
@json_option
def list_(*, client: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """List sessions with their cost, the latest first."""
    found = [
        one for one in _native() if client in (None, one.client) and (project is None or is_of(one.project, project))
    ][:limit]
    if as_json:
        print_json([_described(one) for one in found])
        return
    rows = [
        [
            one.session,
            one.client,
            age(one.last_at),
            one.project,
            one.requests,
            f"${one.cost:.4f}{'+' * (one.unpriced > 0)}",
        ]
        for one in found
    ]
    print_table(["SESSION", "CLIENT", "AGE", "PROJECT", "REQUESTS", "COST"], rows, empty="No sessions found.")


@command.command(epilog="Example: serena-central transcripts resume 8ac3b04e")
@click.argument("session")
@json_option
def resume(*, session: str, as_json: bool) -> None:
    """Print the command that resumes a session in its client. The beginning of an id is enough.

    Of a session in this server's own transcripts it prints the conversation, as messages of Anthropic's API.
    """
    own = [one.session for one in sessions(Places.of_user().transcripts) if one.session.startswith(session)]
    found = [one for one in _native() if one.session.startswith(session)]
    fitting = list(dict.fromkeys([*own, *(one.session for one in found)]))
    if len(fitting) != 1:
        names = ", ".join(fitting[:5])
        why = f"fits {counted(len(fitting), 'session')}: {names}" if fitting else "is not the id of a session"
        raise InvalidArguments(f"{session} {why}. `serena-central transcripts list` and `own` show the ids.")
    if own:
        print_json(_plain(resume_own(Places.of_user().transcripts, own[0])))
        return
    described = _described(found[0])
    if as_json:
        print_json(described)
    else:
        say(described["resume"])


@command.command(epilog="Example: serena-central transcripts pin 3f0c… --off")
@click.argument("session")
@click.option("--off", is_flag=True, help="No longer keep it.")
def pin(*, session: str, off: bool) -> None:
    """Keep a session's transcript of this server whatever its age. The beginning of an id is enough."""
    folder = Places.of_user().transcripts
    known = cleanup.pinned(folder) if off else {one.session for one in sessions(folder)}
    fitting = [session] if session in known else sorted(one for one in known if one.startswith(session))
    if len(fitting) != 1:
        what = "is not that of a pinned session" if off else "is not the id of a session that this server has written"
        why = f"fits {counted(len(fitting), 'session')}: {', '.join(fitting[:5])}" if fitting else what
        raise InvalidArguments(f"{session} {why}. `serena-central transcripts own` shows the ids.")
    cleanup.pin(folder, fitting[0], on=not off)


@command.command(epilog="Example: serena-central transcripts clean")
@json_option
def clean(*, as_json: bool) -> None:
    """Delete old transcripts of this server, as it does once a day; archive clients' where settings say so."""
    places, now = Places.of_user(), datetime.now(UTC)

    def keep_days(root: str) -> int:
        return cleanup.days_kept(load(Path(root)).value.get("cleanupPeriodDays") if root else None)

    deleted = cleanup.clean_up(places.transcripts, keep_days, now)
    archived: list[Path] = []
    if load_server_config({}).value.archive_transcripts:
        archived = cleanup.archive(roots_of(Path.home(), os.environ), places.transcript_archive, now)
    if as_json:
        print_json({"deleted": [str(one) for one in deleted], "archived": [str(one) for one in archived]})
        return
    say(f"{counted(len(deleted), 'day file')} deleted, {counted(len(archived), 'transcript')} archived.")


@command.command("own", epilog="Example: serena-central transcripts own --json")
@json_option
def own(*, as_json: bool) -> None:
    """List the sessions in transcripts that this server wrote."""
    places = Places.of_user()
    kept = cleanup.pinned(places.transcripts)
    found = sessions(places.transcripts)
    if as_json:
        print_json([{**_plain(one), "pinned": one.session in kept} for one in found])
        return
    rows = [
        [one.session, one.project, one.lines, one.last_at, "pinned" if one.session in kept else ""] for one in found
    ]
    empty = "No transcripts. The server writes those of its tasks, and with `transcripts: true` those of clients."
    print_table(["SESSION", "PROJECT", "LINES", "LAST LINE", ""], rows, empty=empty)


def _native() -> list[SessionUsage]:
    """Those of all clients; prints what could not be read."""
    places = Places.of_user()
    places.create()
    with UsageStore(places.usage_file) as store:
        done = update(store, all_roots(places.transcripts), Prices(load_server_config({}).value.prices))
        for line in omissions(store, done):
            say(line, err=True)
        return session_usage(store)


def _described(one: SessionUsage) -> dict[str, Any]:
    return {
        **_plain(one),
        "resume": f"cd {shlex.quote(one.project)} && {RESUME[one.client].format(shlex.quote(one.session))}",
    }


def _plain(value: Any) -> dict[str, Any]:
    return msgspec.to_builtins(value)
