"""A real server whose database fails: it goes on serving, says what is wrong, and recovers when that is over."""

import resource
import sqlite3
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest

from serena_central.store.database import Database
from serena_central.store.rows import ProjectRow
from tests.support.child import Child, run_command, serving_child

pytestmark = pytest.mark.anyio


def database_of(folder: Path) -> Path:
    return folder / "home" / "serena-central.db"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder whose database was made by an earlier run."""
    (tmp_path / "home").mkdir()
    database = Database(database_of(tmp_path))
    database.open()
    database.close()
    return tmp_path


async def until_store(child: Child, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(60):
        while True:
            async with child.http() as http:
                store = (await http.get("/api/v1/stats")).json()["store"]
            if fits(store):
                return store
            await anyio.sleep(0.05)


async def until_event(child: Child, kind: str) -> dict[str, Any]:
    """Asks several times at once: a connection that is the only one keeps all pages in memory, and sees no fault."""
    found: list[dict[str, Any]] = []

    async def ask(http: httpx.AsyncClient) -> None:
        found.extend((await http.get("/api/v1/events", params={"kind": kind})).json()["events"])

    with anyio.fail_after(60):
        async with child.http() as http:
            while not found:
                async with anyio.create_task_group() as tasks:
                    for _ in range(8):
                        tasks.start_soon(ask, http)
    return found[0]


def fine(store: dict[str, Any]) -> bool:
    return store["problem"] is None and not store["queued"]


@contextmanager
def locked(database: Path) -> Generator[None]:
    """Holds the write lock, as another program would."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def calls_recorded(folder: Path) -> int:
    """Of list_projects, by the database."""
    with closing(sqlite3.connect(database_of(folder))) as connection:
        (count,) = connection.execute("SELECT count(*) FROM tool_call WHERE tool = 'list_projects'").fetchone()
    return count


async def test_a_locked_database_delays_neither_the_start_nor_calls_and_nothing_is_lost(made: Path) -> None:
    with ExitStack() as lock:
        lock.enter_context(locked(database_of(made)))
        async with serving_child(made) as child:
            for _ in range(3):
                await child.call("list_projects", {})
            store = await until_store(child, lambda store: bool(store["problem"]))
            assert "locked" in store["problem"]
            status = await run_command(made, "status")
            assert (status.code, "locked" in status.out) == (0, True)
            await child.call("list_projects", {})
            told = await until_event(child, "store.failed")
            assert "continues without it" in told["message"]
            lock.close()
            store = await until_store(child, fine)
            assert (store["dropped"], calls_recorded(made)) == ({}, 4)
            await until_event(child, "store.recovered")


async def test_a_full_disk_is_told_and_recording_goes_on_when_there_is_room_again(made: Path) -> None:
    async with serving_child(made) as child:
        await child.call("list_projects", {})
        await until_store(child, fine)
        process = psutil.Process(child.process.pid)
        _, hard = process.rlimit(resource.RLIMIT_FSIZE)
        # Files can't grow any more, the log least of all: as on a disk that is full.
        process.rlimit(resource.RLIMIT_FSIZE, (1, hard))
        await child.call("list_projects", {})
        store = await until_store(child, lambda store: bool(store["problem"]))
        assert "continues without it" in store["problem"]
        status = await run_command(made, "status")
        assert (status.code, "continues without it" in status.out) == (0, True)
        await child.call("list_projects", {})
        process.rlimit(resource.RLIMIT_FSIZE, (hard, hard))
        store = await until_store(child, fine)
        assert (store["dropped"], calls_recorded(made)) == ({}, 3)
    assert list(database_of(made).parent.glob("*corrupt*")) == []


async def test_a_corrupt_database_is_set_aside_and_recording_begins_anew(made: Path) -> None:
    garbage = b"this was a database once" * 1000
    database_of(made).write_bytes(garbage)
    async with serving_child(made) as child:
        await child.call("list_projects", {})
        told = await until_event(child, "store.replaced")
        assert "set aside" in told["message"]
        await until_store(child, fine)
        assert calls_recorded(made) == 1
    (aside,) = database_of(made).parent.glob("serena-central.db.corrupt-*[0-9]")
    assert aside.read_bytes() == garbage
    assert aside.name in (made / "home" / "logs" / "server.log").read_text()


async def test_a_database_that_becomes_corrupt_while_it_is_used_is_set_aside_then(made: Path) -> None:
    async with serving_child(made) as child:
        await child.call("list_projects", {})
        await until_store(child, fine)
        database_of(made).write_bytes(b"overwritten by somebody" * 10_000)
        await child.call("list_projects", {})
        told = await until_event(child, "store.replaced")
        assert "set aside" in told["message"]
        await child.call("list_projects", {})
        await until_store(child, fine)
        assert calls_recorded(made) >= 1
    assert len(list(database_of(made).parent.glob("serena-central.db.corrupt-*[0-9]"))) == 1


async def test_a_database_that_is_deleted_under_the_server_is_made_again_and_the_loss_is_told(made: Path) -> None:
    async with serving_child(made) as child:
        await child.call("list_projects", {})
        await until_store(child, fine)
        for file in database_of(made).parent.glob("serena-central.db*"):
            file.unlink()
        await child.call("list_projects", {})
        told = await until_event(child, "store.replaced")
        assert "deleted or replaced" in told["message"]
        await child.call("list_projects", {})
        await until_store(child, fine)
        assert calls_recorded(made) == 2


async def test_projects_of_an_earlier_run_are_known_again_once_the_database_can_be_read(made: Path) -> None:
    database, away = database_of(made), made / "away.db"
    with closing(Database(database)) as opened:
        opened.write([ProjectRow(root=f"/x/{name}", name=name, added_at=1.0, last_used_at=1.0) for name in "ab"])
    database.rename(away)
    database.mkdir()  # as a disk that is not mounted yet
    async with serving_child(made) as child, child.http() as http:
        known = (await http.get("/api/v1/projects")).json()["projects"]
        assert known == []
        database.rmdir()
        away.rename(database)
        with anyio.fail_after(60):
            while [one["name"] for one in known] != ["a", "b"]:
                await anyio.sleep(0.05)
                known = (await http.get("/api/v1/projects")).json()["projects"]
