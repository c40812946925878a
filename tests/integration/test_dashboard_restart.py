"""What pages show of sessions after a restart of the server: what they did before, from the database."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.browser import Visitor, shown, visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def run(home: Path) -> AsyncGenerator[tuple[RunningCentral, httpx.AsyncClient, Visitor]]:
    async with running_central(home) as central, central.http() as http, visiting(central) as visitor:
        yield central, http, visitor


async def call(http: httpx.AsyncClient, session: str, tool: str, **arguments: Any) -> None:
    await http.post(f"/api/v1/tools/{tool}", json={"session": session, "arguments": arguments})


async def some_work(http: httpx.AsyncClient, root: Path) -> str:
    """A session in the project, which it names in each call: two calls that succeed, and one that fails."""
    session: str = (await http.post("/api/v1/sessions", json={"client_name": "codex"})).json()["session_id"]
    for path in ("cart.py", "cart.py", "gone.py"):
        await call(http, session, "read_file", relative_path=path, project=str(root))
    return session


def lines(html: str) -> list[str]:
    return re.findall(r'<li id="line-.*?class="text"[^>]*>(.*?)</', html)


def row(html: str, tool: str) -> str:
    (found,) = re.findall(rf'(?s)<tr id="tool-{tool}".*?</tr>', html)
    return " ".join(shown(found.replace("<wbr>", "")).split())


def plotted(page: str) -> tuple[int, int]:
    """Calls, and failed ones, of all minutes of the last hour: the calls of one test may lie in two."""
    minutes = re.findall(r"(\d+) calls?(?:, (\d+) failed)?</title>", page)
    return sum(int(calls) for calls, _ in minutes), sum(int(failed or 0) for _, failed in minutes)


async def test_a_sessions_log_tools_and_last_hour_are_there_after_a_restart(tmp_path: Path, project: Path) -> None:
    async with run(tmp_path) as (_, http, visitor):
        session = await some_work(http, project)
        before = await visitor.see(f"/sessions/{session}")
        of_api = (await http.get(f"/api/v1/sessions/{session}")).json()
        assert len(lines(before)) == 3
    async with run(tmp_path) as (_, http, visitor):
        after = await visitor.see(f"/sessions/{session}")
        assert lines(after) == lines(before)
        assert row(after, "read_file") == row(before, "read_file")
        assert plotted(after) == (3, 1)
        later = (await http.get(f"/api/v1/sessions/{session}")).json()
        assert [line["text"] for line in later["log"]] == [line["text"] for line in of_api["log"]]
        assert [line["call"] for line in later["log"]] == [line["call"] for line in of_api["log"]]
        assert later["tools"] == of_api["tools"]


async def test_what_a_session_does_after_a_restart_is_added(tmp_path: Path, project: Path) -> None:
    async with run(tmp_path) as (_, http, _):
        session = await some_work(http, project)
    async with run(tmp_path) as (_, http, visitor):
        await call(http, session, "read_file", relative_path="cart.py", project=str(project))
        for _ in range(2):  # what was read from the database is not counted again
            page = await visitor.see(f"/sessions/{session}")
            assert len(lines(page)) == 4
            assert row(page, "read_file").startswith("read_file 4")
            assert plotted(page) == (4, 1)
        (used,) = (await http.get("/api/v1/stats")).json()["tools"]
        assert used["calls"] == 1  # since this start, whoever looked


async def test_a_session_that_never_activated_a_project_still_works_on_it_after_a_restart(
    tmp_path: Path, project: Path
) -> None:
    async with run(tmp_path) as (_, http, _):
        session = await some_work(http, project)
    async with run(tmp_path) as (_, http, visitor):
        shown_by_api = (await http.get(f"/api/v1/sessions/{session}")).json()
        assert shown_by_api["project_root"] == str(project)
        assert shown_by_api["active_project_root"] is None
        assert f'href="/dashboard/projects/one?root={project}' in (await visitor.see(f"/sessions/{session}")).replace(
            "%2F", "/"
        )
        await call(http, session, "list_dir", relative_path=".", project=str(project))  # the project is known again
        page = await visitor.see(f"/projects/one?root={project}")
        assert f'id="worker-{session}"' in page


async def test_a_session_whose_client_may_come_back_is_not_shown_as_lost(tmp_path: Path, project: Path) -> None:
    async with run(tmp_path) as (_, http, _):
        session = await some_work(http, project)
    async with run(tmp_path) as (_, _, visitor):
        for path in ("", "/sessions", f"/sessions/{session}", f"/projects/one?root={project}"):
            page = await visitor.see(path)
            assert re.search(r'class="state awaited"', page), path
            assert not re.search(r'class="state disconnected"', page), path
        assert "No problems" in await visitor.see()
