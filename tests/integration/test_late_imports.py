"""Everything that needs a large library, asked for at once in the first moment of a server."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.child import PATIENCE_S, serving_child
from tests.support.mcp import RawClient, text_of
from tests.support.transcripts import claude, written
from tests.support.upstreams import scripted, settings_of_user

pytestmark = pytest.mark.anyio

TURNS = (sys.executable, "-m", "tests.support.turns")

PATHS = (
    "/api/v1/usage",
    "/api/v1/edits",
    "/api/v1/tasks",
    "/api/v1/events",
    "/dashboard",
    "/dashboard/usage",
    "/metrics",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", claude("m", at=now, output=100_000))
    settings_of_user(tmp_path / "user" / ".claude", {"good": scripted()})
    return tmp_path


async def test_large_libraries_are_imported_one_at_a_time(folder: Path) -> None:
    """In two threads at once, one of them is given half of a module: a server ended because of that."""
    statuses: dict[str, int] = {}

    async def get(http: httpx.AsyncClient, path: str) -> None:
        statuses[path] = (await http.get(path, follow_redirects=True)).status_code

    async def call(http: httpx.AsyncClient) -> None:
        client = RawClient(http, "handshake")
        await client.open()
        assert text_of(await client.call("good__echo", text="x")) == "x"

    repository = str(Path(__file__).parents[2])
    async with (
        serving_child(
            folder, program=TURNS, PYTHONPATH=repository, CLAUDE_CONFIG_DIR=str(folder / "user" / ".claude")
        ) as child,
        child.http() as http,
        httpx.AsyncClient(base_url=child.url, timeout=PATIENCE_S) as browser,
        anyio.create_task_group() as tasks,
    ):
        link = (await http.post("/api/v1/dashboard/link", json={})).json()["path"]
        assert (await browser.get(link)).status_code == 200
        tasks.start_soon(call, http)
        for path in PATHS:
            tasks.start_soon(get, browser if path.startswith("/dashboard") else http, path)
    assert statuses == dict.fromkeys(PATHS, 200)
    assert "out of turn" not in (folder / "serve.log").read_text()
