"""A real server whose database is PostgreSQL, and is lost: it goes on serving, says so, and loses nothing."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.child import Child, run_command, serving_child
from tests.support.postgresql import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.postgresql]

VARIABLE = "SERENA_CENTRAL_DATABASE_URL"


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


async def until_store(child: Child, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(60):
        while True:
            async with child.http() as http:
                store = (await http.get("/api/v1/stats")).json()["store"]
            if fits(store):
                return store
            await anyio.sleep(0.05)


async def until_event(child: Child, kind: str) -> dict[str, Any]:
    with anyio.fail_after(60):
        async with child.http() as http:
            while True:
                found = (await http.get("/api/v1/events", params={"kind": kind})).json()["events"]
                if found:
                    return found[0]
                await anyio.sleep(0.05)


def fine(store: dict[str, Any]) -> bool:
    return store["problem"] is None and not store["queued"]


def failing(store: dict[str, Any]) -> bool:
    return bool(store["problem"])


async def doctor(folder: Path, url: str) -> dict[str, Any]:
    said = await run_command(folder, "doctor", "--json", **{VARIABLE: url})
    (found,) = [check for check in said.json if check["name"] == "database"]
    return found


async def test_a_lost_database_stops_nothing_and_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.database("lost").replace("@", ":hunter2@")
    async with serving_child(tmp_path, **{VARIABLE: url}) as child:
        await child.call("list_projects", {})
        await until_store(child, fine)
        assert (await doctor(tmp_path, url))["state"] == "ok"
        cluster.kill()
        try:
            for _ in range(3):
                await child.call("list_projects", {})
            assert "not usable" in (await until_store(child, failing))["problem"]
            status = await run_command(tmp_path, "status")
            assert (status.code, "not usable" in status.out) == (0, True)
            assert "records wait in memory" in (await until_event(child, "store.failed"))["message"]
            seen = await doctor(tmp_path, url)
            assert (seen["state"], "not usable" in seen["says"]) == ("failed", True)
        finally:
            cluster.start()
        assert (await until_store(child, fine))["dropped"] == {}
        await until_event(child, "store.recovered")
        assert cluster.execute("SELECT count(*) FROM tool_call WHERE tool = 'list_projects'", "lost") == [[4]]
    assert "hunter2" not in (tmp_path / "home" / "logs" / "server.log").read_text()
    assert not list((tmp_path / "home").glob("*.db*"))


async def test_a_server_starts_without_its_database_and_finds_it_later(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.database("late")
    cluster.stop()
    try:
        async with serving_child(tmp_path, **{VARIABLE: url}) as child:
            await child.call("list_projects", {})
            await until_store(child, failing)
            cluster.start()
            assert (await until_store(child, fine))["dropped"] == {}
            assert cluster.execute("SELECT count(*) FROM tool_call", "late") == [[1]]
    finally:
        if not cluster.running:
            cluster.start()


async def test_a_server_does_not_start_with_a_database_of_a_newer_version(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.database("newer")
    async with serving_child(tmp_path, **{VARIABLE: url}) as child:
        await until_store(child, fine)
    cluster.execute("UPDATE alembic_version SET version_num = '9999'", "newer")
    refused = await run_command(tmp_path, "serve", "--daemon", "--port", "0", **{VARIABLE: url})
    assert (refused.code, refused.out) == (1, "")
    assert "The database has schema 9999" in refused.err
    assert "Upgrade serena-central" in refused.err


async def test_a_session_and_its_edits_survive_kill_9_and_commands_read_them_without_a_server(
    cluster: Cluster, tmp_path: Path
) -> None:
    url = cluster.database("restart")
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("x = 1\n")
    headers = {"x-serena-session": "window-1"}
    async with serving_child(tmp_path, **{VARIABLE: url}) as child:
        async with child.http() as http:
            arguments = {"relative_path": "cart.py", "needle": "x = 1", "repl": "x = 2", "project": str(root)}
            answer = await http.post(
                "/api/v1/tools/replace_content",
                json={"arguments": {**arguments, "mode": "literal"}, "session": "window-1"},
                headers=headers,
            )
            assert answer.status_code == 200, answer.text
        await until_store(child, fine)
        child.process.kill()
        await child.process.wait()
    async with serving_child(tmp_path, **{VARIABLE: url}) as child, child.http() as http:
        (edit,) = (await http.get("/api/v1/edits")).json()["edits"]
        undone = await http.post(f"/api/v1/edits/{edit['id']}/undo")
        assert undone.status_code == 200, undone.text
        await until_store(child, fine)
    assert (root / "cart.py").read_text() == "x = 1\n"
    usage = await run_command(tmp_path, "usage", "--by", "edit", "--json", **{VARIABLE: url})
    assert {row["tool"] for row in usage.json["rows"]} == {"replace_content", "undo"}
