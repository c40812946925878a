"""`serena-central` that kills itself at a named step of an edit: `DIE_AT=replace:after:2` is after the second rename.

A real server but for what its composition root is handed: a journal and a disk that count, and wrappers around its
HTTP application and its database. `POINTS` are the steps in their order. `CLOCK_AHEAD_S` moves its wall clock.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serena_central import app
from serena_central.cli.main import main
from serena_central.editing.disk import Disk
from serena_central.editing.journal import Entry, Journal
from serena_central.editing.transaction import Applier
from serena_central.store import database
from serena_central.store.rows import EditRow

POINTS = [
    f"{step}:{side}"
    for step in ("begin", "write", "link", "replace", "remove", "sync_folder", "end", "answer", "flush")
    for side in ("before", "after")
]

_counts: Counter[str] = Counter()


def _pass(point: str) -> None:
    if point != "begin:before" and not _counts["begin:before"]:
        return  # the recovery of what an earlier run left
    _counts[point] += 1
    if f"{point}:{_counts[point]}" == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal(Journal):
    def begin(self, entry: Entry) -> None:
        _pass("begin:before")
        super().begin(entry)
        _pass("begin:after")

    def end(self, entry_id: str, *, applied: bool | None) -> None:
        _pass("end:before")
        super().end(entry_id, applied=applied)
        _pass("end:after")


def _dying(name: str) -> Any:
    real = getattr(Disk, name)

    def method(self: Disk, *arguments: Any) -> Any:
        _pass(f"{name}:before")
        made = real(self, *arguments)
        _pass(f"{name}:after")
        return made

    return method


STEPS = ("write", "link", "replace", "remove", "sync_folder")

DyingDisk = type("DyingDisk", (Disk,), {name: _dying(name) for name in STEPS})


class DyingAnswers:
    """Counts answers that follow an edit."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            answers = message["type"] == "http.response.body" and message.get("body") and _counts["end:after"] > 0
            if answers:
                _pass("answer:before")
            await send(message)
            if answers:
                _pass("answer:after")

        await self._app(scope, receive, counted)


def _build(loaded: Any, places: Any, **options: Any) -> app.Application:
    central = _real_build(loaded, places, applier=Applier(DyingJournal(places.journal), disk=DyingDisk()), **options)
    central.app.add_middleware(DyingAnswers)
    return central


def _write(self: database.Database, rows: Sequence[Any]) -> int:
    edits = any(isinstance(row, EditRow) for row in rows)
    if edits:
        _pass("flush:before")
    refused = _real_write(self, rows)
    if edits:
        _pass("flush:after")
    return refused


def _move_clock(ahead_s: float) -> None:
    real = time.time
    time.time = lambda: real() + ahead_s


_real_build, _real_write = app.build, database.Database.write

if __name__ == "__main__":
    _move_clock(float(os.environ.get("CLOCK_AHEAD_S", "0")))
    app.build = _build
    database.Database.write = _write
    main()
