"""The store as a whole, on a real file: it records, answers, sweeps, and never stops the server."""

import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest

from serena_central.config.policies import RetentionPolicy
from serena_central.core.errors import StoreError
from serena_central.core.events import EventBus
from serena_central.store.database import Database
from serena_central.store.queries import DAY_S, Queries
from serena_central.store.query_results import EventFilter
from serena_central.store.rows import EventRow, ProjectRow, ToolCallRow
from serena_central.store.store import Store
from tests.support.events import Ended, Happened, session_created
from tests.support.postgresql import url_for

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(store: Store) -> AsyncGenerator[None]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            yield
            tasks.cancel_scope.cancel()


def store_at(path: Path, bus: EventBus, *, policy: RetentionPolicy | None = None) -> Store:
    return Store(path, bus, url=url_for(path), policy=policy)


async def kinds_in(path: Path) -> list[str]:
    with closing(Database(path, url_for(path))) as database:
        return [event.kind for event in Queries(database).events(EventFilter()).events]


async def test_rows_put_and_events_published_are_there_after_a_stop(tmp_path: Path) -> None:
    path, bus = tmp_path / "x.db", EventBus()
    store = store_at(path, bus)
    store.writer.put(ProjectRow(root="/a", name="a", added_at=1.0, last_used_at=1.0))
    async with running(store):
        bus.publish(session_created(message="hello", session="s-1"))
        bus.publish(Ended())
    assert await kinds_in(path) == ["session.ended", "session.created"]
    with closing(Database(path, url_for(path))) as database:
        assert [row.root for row in Queries(database).projects()] == ["/a"]


async def test_events_are_found_while_it_runs(tmp_path: Path) -> None:
    bus = EventBus()
    store = store_at(tmp_path / "x.db", bus)
    async with running(store):
        bus.publish(Happened(message="hello", session="s-1", number=3))
        await anyio.wait_all_tasks_blocked()
        await store.writer.flush()
        (event,) = (await store.ask(lambda queries: queries.events(EventFilter(session="s-1")))).events
    assert (event.kind, event.message, event.severity, event.data) == (
        "server.happened",
        "hello",
        "info",
        {"number": 3},
    )


@pytest.mark.sqlite
async def test_the_server_goes_on_without_a_database_and_is_told(tmp_path: Path) -> None:
    bus = EventBus()
    store = Store(tmp_path / "missing" / "x.db", bus)
    with bus.subscribe() as news:
        async with running(store):
            assert (await anext(news)).kind == "store.failed"
            store.writer.put(ProjectRow(root="/a", name="a", added_at=1.0, last_used_at=1.0))
            with pytest.raises(StoreError, match="is not usable"):
                await store.ask(lambda queries: queries.projects())
    assert bus.recent()[-1].kind == "store.dropped"


@pytest.mark.sqlite
async def test_a_corrupt_file_is_news_and_recording_goes_on(tmp_path: Path) -> None:
    path, bus = tmp_path / "x.db", EventBus()
    path.write_bytes(b"not a database" * 1000)
    with bus.subscribe() as news:
        async with running(Store(path, bus)):
            told = await anext(news)
    assert (told.kind, "set aside" in told.message) == ("store.replaced", True)
    assert await kinds_in(path) == ["store.replaced"]


async def test_old_rows_are_swept_from_time_to_time(tmp_path: Path) -> None:
    store = store_at(tmp_path / "x.db", EventBus(), policy=RetentionPolicy(sweep_s=0.01))
    async with running(store):
        store.writer.put(EventRow(seq=1, at=0.0, kind="old"))
        await store.writer.flush()
        while (await store.ask(lambda queries: queries.events(EventFilter()))).events:
            await anyio.lowlevel.checkpoint()


@pytest.mark.sqlite
async def test_a_hundred_thousand_old_rows_go_while_new_ones_come_and_their_space_is_given_back(tmp_path: Path) -> None:
    path, now = tmp_path / "x.db", time.time()
    with closing(Database(path)) as database:
        database.write([ToolCallRow(id="old", at=now - 8 * DAY_S, session="s", tool="find", duration_ms=1.0)])
    with closing(sqlite3.connect(path)) as raw:
        insert = "INSERT INTO event (seq, at, kind, severity, message, data) VALUES (?, ?, 'a.b', 'info', ?, '{}')"
        with raw:
            raw.executemany(insert, ((number, now - 15 * DAY_S, "x" * 100) for number in range(100_000)))
        full = path.stat().st_size
        store = Store(path, bus := EventBus())
        put = put_meanwhile = 0
        async with running(store):
            while old_events(raw):
                bus.publish(Happened())
                put += 1
                await anyio.lowlevel.checkpoint()  # to the store's subscription
                await store.writer.flush()
                put_meanwhile += old_events(raw) > 0
            while path.stat().st_size > full / 10:
                await anyio.sleep(0.01)
            assert await store.ask(lambda queries: queries.calls_of_session("s")) == []
            assert [total.calls for total in await store.ask(lambda queries: queries.totals_by_day())] == [1]
        assert put_meanwhile > 0
        assert store.writer.dropped.total() == 0
        assert raw.execute("SELECT count(*) FROM event").fetchone() == (put,)


def old_events(raw: sqlite3.Connection) -> int:
    return raw.execute("SELECT count(*) FROM event WHERE kind = 'a.b'").fetchone()[0]
