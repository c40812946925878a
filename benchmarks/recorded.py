"""A database as a busy week leaves it: many calls of 300 sessions, with their details, edits, events, runs and memory.

Written by the store's own statements, so that its totals are those that a server would have made.
"""

import random
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from serena_central.editing.patch import FilePatch
from serena_central.editing.plan import Hunk
from serena_central.store.database import Database
from serena_central.store.rows import (
    CallDetailRow,
    EditRow,
    EventRow,
    MemoryTotalRow,
    ProjectRow,
    Row,
    ServerRunRow,
    SessionRow,
    ToolCallRow,
)
from serena_central.store.spans import SPANS_S
from serena_central.tools.families import CATALOGUE

SESSIONS = 300

WEEK_S = 6.9 * 86_400
"""The server deletes calls that are a week old."""

CALLS_OF_AN_EDIT = 50
CALLS_OF_AN_EVENT = 10
RUNS = 2000
BATCH_ROWS = 2000

CLIENTS = ("claude-code", "codex", "cursor", "zed", "opencode")
ERRORS = ("SymbolNotFound", "EditConflict", "InvalidArguments")
KINDS = ("session.created", "session.idle", "server.moved", "server.memory", "project.opened", "edit.applied")

TOTAL = "    def total(self) -> float:\n        return sum(line.price for line in self.lines)\n"


def record_week(database: Path, roots: Sequence[Path], calls: int) -> None:
    """Fills a new database with so many calls in these roots, the newest just now."""
    store = Database(database)
    rows = _Week(roots, calls).rows()
    try:
        while batch := list(islice(rows, BATCH_ROWS)):
            store.write(batch)
    finally:
        store.close()


class _Week:
    """The same rows each time, but for the moment."""

    def __init__(self, roots: Sequence[Path], calls: int) -> None:
        self._roots = roots
        self._calls = calls
        self._now = time.time()
        self._chance = random.Random(5)
        self._tools = [tool.name for tool in CATALOGUE]

    def rows(self) -> Iterator[Row]:
        for number, root in enumerate(self._roots):
            yield ProjectRow(
                root=str(root),
                name=root.name,
                languages=["python"],
                added_at=self._now - WEEK_S,
                last_used_at=self._now - number,
            )
        yield from map(self._session, range(SESSIONS))
        yield from map(self._run, range(RUNS))
        yield from self._memory()
        for number in range(self._calls):
            yield from self._call(number)

    def _session(self, number: int) -> SessionRow:
        root = self._roots[number % len(self._roots)]
        return SessionRow(
            id=f"session-{number:04}",
            credential="somebody",
            era="modern",
            client_name=CLIENTS[number % len(CLIENTS)],
            client_version=f"2.1.{number}",
            created_at=self._now - WEEK_S + number,
            last_activity=self._now - 10 * number,
            state="idle",
            explicit_id=f"session-{number:04}",
            working_folder=str(root),
            project_root=str(root),
            project_name=root.name,
            tool_call_count=self._calls // SESSIONS,
            error_count=self._calls // SESSIONS // 30,
            edit_count=self._calls // SESSIONS // CALLS_OF_AN_EDIT,
        )

    def _run(self, number: int) -> ServerRunRow:
        at = self._now - WEEK_S * (1 - number / RUNS)
        root = str(self._roots[number % len(self._roots)])
        return ServerRunRow(
            id=f"run-{number}",
            server="ty",
            version="0.0.1",
            project_root=root,
            started_at=at,
            ended_at=at + 600,
            reason="idle",
            exit_code=0,
            calls=100,
            peak_memory_mb=90.0,
        )

    def _memory(self) -> Iterator[MemoryTotalRow]:
        for span in SPANS_S[:2]:
            for since in range(int(self._now - WEEK_S) // span * span, int(self._now), span):
                for root in ("", *map(str, self._roots[:5])):
                    yield MemoryTotalRow(
                        span=span, root=root, since=since, memory_bytes=self._chance.randrange(1 << 30)
                    )

    def _call(self, number: int) -> Iterator[Row]:
        chance = self._chance
        at = self._now - WEEK_S * (1 - (number + 1) / self._calls)
        # A few sessions, projects and tools make most of the calls.
        session = int(SESSIONS * chance.random() ** 3)
        root = self._roots[session % len(self._roots)]
        tool = self._tools[int(len(self._tools) * chance.random() ** 2)]
        failed = number % 30 == 0
        took_ms = chance.lognormvariate(1.5, 1.5)
        path = f"package_{number % 40}/module_{number % 400}.py"
        yield ToolCallRow(
            id=f"call-{number}",
            at=at,
            session=f"session-{session:04}",
            project=root.name,
            tool=tool,
            duration_ms=took_ms,
            outcome="error" if failed else "ok",
            error=ERRORS[number // 30 % len(ERRORS)] if failed else None,
            answer_chars=chance.randrange(4000),
        )
        yield CallDetailRow(
            id=f"call-{number}",
            at=at,
            arguments={"name_path_pattern": f"Cart_{number}/total", "relative_path": path, "include_body": True},
            answer="" if failed else TOTAL * 4,
            error=f"No symbol matches Cart_{number}/total in {path}." if failed else "",
            phases_ms={"server": took_ms / 2, "other": took_ms / 2},
            servers=["ty"],
            roots=[str(root)],
        )
        if number % CALLS_OF_AN_EDIT == 0:
            yield self._edit(number, at, session, root, path)
        if number % CALLS_OF_AN_EVENT == 0:
            yield self._event(number, at, session, root)

    def _edit(self, number: int, at: float, session: int, root: Path, path: str) -> EditRow:
        before, after = (f"{TOTAL}# {one}\n".encode() for one in (number - 1, number))
        patch = FilePatch(path=path, hunks=[Hunk(number % 1000, before, after)])
        return EditRow(
            id=f"e-{number}",
            at=at,
            call=f"call-{number}",
            tool="replace_symbol_body",
            session=f"session-{session:04}",
            client=CLIENTS[session % len(CLIENTS)],
            project_root=str(root),
            files=[{"path": path, "fate": "changed", "added": 1, "removed": 1}],
            patches=zlib.compress(msgspec.msgpack.encode([patch]), 1),
            undoes=f"e-{number - CALLS_OF_AN_EDIT}" if number and number // CALLS_OF_AN_EDIT % 10 == 0 else None,
            symbol="Cart/total",
        )

    def _event(self, number: int, at: float, session: int, root: Path) -> EventRow:
        kind = KINDS[number // CALLS_OF_AN_EVENT % len(KINDS)]
        return EventRow(
            seq=number,
            at=at,
            kind=kind,
            severity="warning" if number % (100 * CALLS_OF_AN_EVENT) == 0 else "info",
            session=f"session-{session:04}" if kind.startswith("session") else None,
            project=str(root),
            server="ty" if kind.startswith("server") else None,
            message=f"{kind} in {root.name}",
        )
