"""What a session called before a restart is read from the store once, when somebody looks at it."""

from pathlib import Path

import anyio
import pytest

from serena_central.core.events import EventBus
from serena_central.sessions.earlier import read_earlier_calls
from serena_central.sessions.session import Session
from serena_central.store.rows import ToolCallRow
from serena_central.store.store import Store
from tests.support.postgresql import url_for
from tests.unit.sessions.test_record import identity, run_of

pytestmark = pytest.mark.anyio


async def restored(database: Path) -> Session:
    async with run_of(database) as first:
        first.sessions.identify(identity(explicit_id="p-1")).count("find_symbol", 1.0, failed=False, at=0.0)
    async with run_of(database) as second:
        return second.sessions.get("p-1")


async def test_calls_of_before_are_read_once_and_told_apart(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    session = await restored(database)
    before = session.calls_in_store_before
    assert before is not None
    bus = EventBus()
    store = Store(database, bus, url=url_for(database))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            rows = [
                ToolCallRow(id=f"c-{ago}", at=before - ago, session=session.id, tool="find_symbol", duration_ms=ago)
                for ago in (30.0, 20.0, -10.0)
            ]
            rows[0].outcome, rows[0].error = "error", "symbol_not_found"
            for row in rows:
                store.writer.put(row)
            await store.writer.flush()
            assert await read_earlier_calls(session, store) == ""
            assert [line.text for line in session.earlier.log] == [
                "find_symbol error 30.0 ms: symbol_not_found",
                "find_symbol ok 20.0 ms",
            ]
            tool = session.earlier.tools["find_symbol"]
            assert (tool.calls, tool.errors, sorted(tool.durations_ms)) == (2, 1, [20.0, 30.0])
            session.earlier.log.clear()
            assert await read_earlier_calls(session, store) == ""
            assert session.earlier.log == []
            tasks.cancel_scope.cancel()


async def test_a_store_that_fails_is_the_reason(tmp_path: Path) -> None:
    session = await restored(tmp_path / "x.db")
    missing = Store(tmp_path / "missing" / "x.db", EventBus())
    assert "not available" in await read_earlier_calls(session, missing)
    assert session.calls_in_store_before is not None  # another attempt may have more luck
