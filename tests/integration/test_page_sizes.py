"""Every page of the route table keeps to 50 KB, uncompressed, with the database of a busy week: 300 sessions and 40
projects. How long pages take is measured by `make bench ARGS=pages`."""

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recorded import record_week
from serena_central.core.places import Places
from serena_central.store.database import Database
from serena_central.store.rows import ToolCallRow
from serena_central.web.pages.table import PAGES
from tests.support.browser import visiting
from tests.support.central import running_central
from tests.support.example_project import example_project, page_queries

pytestmark = pytest.mark.anyio

CALLS = 6000
BUSY_CALLS = 600
MOST_BYTES = 50_000

MORE = (
    "/statistics?range=day",
    "/statistics?range=week",
    "/statistics?range=week&tools=-p95&projects=-p95",
    "/sessions?sort=client&page=3",
    "/events?q=cart",
    "/settings?sort=from",
)


async def test_every_page_keeps_to_its_size_after_a_busy_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    roots = [tmp_path / "src" / f"project-{number}" for number in range(40)]
    example_project(roots[0])
    places = Places(tmp_path / "home")
    places.home.mkdir(mode=0o700)
    record_week(places.database, roots, CALLS)
    _record_hour(places.database, roots[0])
    async with (
        running_central(tmp_path, patience_s=120) as central,
        central.http() as http,
        visiting(central) as visitor,
    ):
        asked: dict[str, Any] = {"arguments": {"name_path_pattern": "Cart/total", "project": str(roots[0])}}
        assert (await http.post("/api/v1/tools/find_symbol", json=asked)).status_code == 200
        words = {
            "session": "session-0000",
            "call": f"call-{CALLS - 1}",
            "edit": (await http.get("/api/v1/edits")).json()["edits"][0]["id"],
            "server": (await http.get("/api/v1/servers")).json()["servers"][0]["id"],
            "tool": "find_symbol",
        }
        queries = page_queries(roots[0])
        sizes: dict[str, int] = {}
        for page in PAGES:
            if not any(word in page.path for word in ("{upstream}", "{task}", "{conversation}", "{plan}", "{node}")):
                address = page.path.format_map(words) + queries.get(page.path, "")
                sizes[page.path] = len((await visitor.see(address)).encode())
        sizes |= {path: len((await visitor.see(path)).encode()) for path in MORE}
        for path in ("/sessions", "/edits", "/events", "/servers", "/projects", "/statistics"):
            for name in ("q", "sort", "session", "file", "nonsense", "after", "root"):
                too_long = await visitor.http.get(f"/dashboard{path}", params={name: "x" * 10_000})
                assert too_long.status_code == 400
                assert "characters" in too_long.text
                sizes[f"{path}?{name} too long"] = len(too_long.content)
            for name, length in (("session", 300), ("after", 5000)):
                answer = await visitor.http.get(f"/dashboard{path}", params={name: "x" * length})
                sizes[f"{path}?{name}"] = len(answer.content)
        assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


def _record_hour(database: Path, root: Path) -> None:
    """A session that has called in each minute of the last hour, and failed in many."""
    now, store = time.time(), Database(database)
    calls = [
        ToolCallRow(
            id=f"call-of-a-busy-hour-{number}",
            at=now - 3600 * (1 - number / BUSY_CALLS),
            session="session-0000",
            project=root.name,
            tool="insert_after_symbol",
            duration_ms=1234.5 + 777 * (number % 5),
            outcome="error" if number % 2 else "ok",
            error="AmbiguousSymbol" if number % 2 else None,
        )
        for number in range(BUSY_CALLS)
    ]
    try:
        store.write(calls)
    finally:
        store.close()
