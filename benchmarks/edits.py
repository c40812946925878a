"""Rows about edits. The floor is the disk: what the same bytes cost when they are written beside the file, synced and
renamed over it, after a synced line in a journal."""

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median

import anyio

from benchmarks.bench import Bench, Server
from benchmarks.table import Row, row, timed
from serena_central.core.events import EventBus
from serena_central.editing.change import Author
from serena_central.files.text import read_text
from serena_central.projects.editing.conflicts import ConflictGuard
from serena_central.sessions.session import ClientIdentity, IdentifiedBy, Session
from serena_central.store.store import Store
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols, Symbol
from serena_central.tools.symbol_answers import SymbolViews

PLACES = (
    ("django/utils/text.py", "slugify", "def slugify(value, allow_unicode=False):\n    return {}"),
    ("django/db/models/query.py", "QuerySet/latest", "def latest(self, *fields):\n        return {}"),
)

EDITS = 60

_numbers = count()


def replacing(bench: Bench) -> Iterator[Row]:
    """Each edit is asked for a second after nothing: the index has read what the one before it wrote."""
    server = Server(bench.fresh_home("edits"), SERENA_CENTRAL_EDIT_DIAGNOSTICS_S="0")
    try:
        client = bench.client_of(server)
        client.call("find_symbol", name_path_pattern="QuerySet")
        server.await_index()
        server.await_quiet()
        for path, name, body in PLACES:
            file = bench.django / path
            before = file.read_bytes()
            taken: list[float] = []
            used = server.processor_ms()
            try:
                for _ in range(EDITS):
                    arguments = {"name_path": name, "relative_path": path, "body": body.format(next(_numbers))}
                    request = client.prepare("replace_symbol_body", **arguments)
                    started = time.perf_counter()
                    client.send(request)
                    taken.append((time.perf_counter() - started) * 1000)
                used = (server.processor_ms() - used) / EDITS
            finally:
                file.write_bytes(before)
            floor = median(timed(lambda file=file, data=before: written(file, data), EDITS, warm_up=5))
            lines = before.count(b"\n")
            yield row(
                f"replace_symbol_body in {lines} lines",
                "≤ 10 ms",
                taken[5:],
                peer="the disk's",
                base=floor,
                note=f"written and synced plainly: {floor:.2f} ms; processor {used:.0f} ms",
            )
    finally:
        server.stop()


def written(file: Path, data: bytes) -> None:
    """What no careful writer can do without."""
    journal = os.open(file.with_name(".bench-journal"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(journal, data[:1000])
    os.fdatasync(journal)
    os.close(journal)
    beside = file.with_name(".bench-new")
    with beside.open("wb") as new:
        new.write(data)
        new.flush()
        os.fsync(new.fileno())
    beside.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    file.with_name(".bench-journal").unlink()


AUTHOR = Author(session="s", tool="replace_symbol_body", call="c")


def guarding(bench: Bench) -> Iterator[Row]:
    """What the conflict guard costs an edit of a symbol of 2,000 lines, by a session that has seen 2,000 symbols."""
    read = read_text(bench.django / "django/db/models/query.py")
    file = FileSymbols((Symbol("QuerySet", 5, -1, None, 100, 0, 2100, 0, 100, 6),))
    hit, guard = Hit("query.py", file, 0), ConflictGuard()
    session = Session("s", IdentifiedBy.EXPLICIT, ClientIdentity(credential=""), now=0.0)
    views = SymbolViews(Store(bench.home("guard") / "unused.db", EventBus()))
    for number in range(2000):
        views.saw(session, "/root", "query.py", {f"name{number}": "0" * 16})
    views.saw(session, "/root", "query.py", {"QuerySet": "1" * 16})

    async def check() -> None:
        seen = await views.seen_within(session, "/root", "query.py", "QuerySet")
        assert guard.conflict(AUTHOR, hit, read.text, read.stamp, seen=seen) is not None

    async def measured() -> list[float]:
        taken: list[float] = []
        for _ in range(500):
            started = time.perf_counter()
            await check()
            taken.append((time.perf_counter() - started) * 1000)
        return taken

    yield row("the conflict guard's check, 2,000 lines", "≤ 1 ms", anyio.run(measured))
