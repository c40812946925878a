"""A home that is moved, replaced or deleted while its server runs: nobody else's home is written."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from tests.support.child import PATIENCE_S, PROGRAM, environment, run_command, until_gone
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio


async def _serve(folder: Path) -> dict[str, object]:
    started = await run_command(folder, "serve", "--daemon", "--port", "0")
    assert (started.code, started.err) == (0, "")
    return json.loads((folder / "home/server.json").read_text())


async def _end(announced: dict[str, object]) -> None:
    pid = int(str(announced["pid"]))
    try:
        psutil.Process(pid).terminate()
    except psutil.NoSuchProcess:
        return
    await until_gone([pid])


async def _until_ended(announced: dict[str, object]) -> None:
    """A server that nobody asks anything looks less often."""
    with anyio.fail_after(PATIENCE_S):
        async with httpx.AsyncClient() as client:
            while psutil.pid_exists(int(str(announced["pid"]))):
                with suppress(httpx.TransportError):
                    await client.get(str(announced["url"]))
                await anyio.sleep(0.1)


async def test_a_server_whose_home_was_moved_ends_and_leaves_the_next_one_alone(tmp_path: Path) -> None:
    first = await _serve(tmp_path)
    try:
        (tmp_path / "home").rename(tmp_path / "moved")
        second = await _serve(tmp_path)
        try:
            await _until_ended(first)
            assert json.loads((tmp_path / "home/server.json").read_text()) == second
            assert not list((tmp_path / "home").glob("*.replaced-*"))
            assert "was moved or deleted" in (tmp_path / "moved/logs/server.log").read_text()
        finally:
            await _end(second)
    finally:
        await _end(first)


async def test_a_call_to_a_server_whose_home_was_moved_leaves_the_next_ones_database_alone(tmp_path: Path) -> None:
    """It set the log aside into which the next server wrote."""
    first = await _serve(tmp_path)
    try:
        token = (tmp_path / "home/token").read_text().strip()
        url, headers = str(first["url"]).removesuffix("/mcp"), {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S) as http:
            agent = RawClient(http, "handshake", name="agent")
            await agent.open()
            await agent.call("list_projects")
            assert (await http.get("/api/v1/events")).status_code == 200  # its database is open now
            (tmp_path / "home").rename(tmp_path / "moved")
            (tmp_path / "home").mkdir()
            log = tmp_path / "home/serena-central.db-wal"
            log.write_text("what the next server wrote")
            with suppress(httpx.TransportError), anyio.fail_after(PATIENCE_S):
                while True:
                    await agent.call("list_projects")
                    await anyio.sleep(0.02)
        await until_gone([int(str(first["pid"]))])
        assert log.read_text() == "what the next server wrote"
        assert [one.name for one in (tmp_path / "home").iterdir()] == [log.name]
    finally:
        await _end(first)


async def test_a_server_that_is_stopped_with_its_home_moved_leaves_the_next_one_alone(tmp_path: Path) -> None:
    first = await _serve(tmp_path)
    try:
        (tmp_path / "home").rename(tmp_path / "moved")
        second = await _serve(tmp_path)
        try:
            await _end(first)
            assert json.loads((tmp_path / "home/server.json").read_text()) == second
        finally:
            await _end(second)
    finally:
        await _end(first)


async def test_a_server_whose_home_was_deleted_ends(tmp_path: Path) -> None:
    first = await _serve(tmp_path)
    try:
        shutil.rmtree(tmp_path / "home")
        await _until_ended(first)
    finally:
        await _end(first)


async def test_a_server_whose_home_was_moved_ends_although_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    """What it could not print kept it from ending."""
    printed, its_end = os.pipe()
    async with await anyio.open_process(
        [str(PROGRAM), "serve", "--port", "0"], env=environment(tmp_path), stdout=its_end, stderr=its_end
    ) as server:
        os.close(its_end)
        try:
            with anyio.fail_after(PATIENCE_S):
                while not (tmp_path / "home/server.json").exists():
                    await anyio.sleep(0.02)
            announced = json.loads((tmp_path / "home/server.json").read_text())
            os.close(printed)
            (tmp_path / "home").rename(tmp_path / "moved")
            with anyio.fail_after(PATIENCE_S):
                async with httpx.AsyncClient() as client:
                    while server.returncode is None:
                        with suppress(httpx.TransportError):
                            await client.get(announced["url"])
                        await anyio.sleep(0.1)
        finally:
            with suppress(ProcessLookupError):
                server.kill()
