"""A call has a page and a route: what it was given, what it came to, where its time went. Over real HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from serena_central.core.masking import MASK
from serena_central.store.rows import WITHHELD
from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"execute_shell": True}) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


async def called(http: httpx.AsyncClient, session: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Calls a tool, and returns what the API says of the call."""
    await http.post(f"/api/v1/tools/{tool}", json={"session": session, "arguments": arguments})
    (newest, *_) = (await http.get("/api/v1/calls", params={"session": session})).json()["calls"]
    return (await http.get(f"/api/v1/calls/{newest['id']}")).json()


async def session_in(http: httpx.AsyncClient, project: Path) -> str:
    opened = await http.post("/api/v1/sessions", json={"client_name": "codex", "working_folder": str(project)})
    return opened.json()["session_id"]


async def test_a_call_is_kept_with_what_it_was_given_and_came_to(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        session = await session_in(http, project)
        one = await called(http, session, "find_symbol", name_path_pattern="Cart/total", include_body=True)
        assert (one["tool"], one["outcome"], one["session"]) == ("find_symbol", "ok", session)
        assert one["arguments"] == {"name_path_pattern": "Cart/total", "include_body": True}
        assert "return 0" in one["answer"]
        assert one["answer_chars"] >= len(one["answer"])
        assert one["servers"] == ["ty"]
        assert one["roots"] == [str(project)]
        assert {"scope", "barrier", "server", "shaping", "other"} <= one["phases_ms"].keys()
        assert max(one["phases_ms"].values()) <= one["duration_ms"]
    page = shown(await visitor.see(f"/calls/{one['id']}"))
    for part in (
        "find_symbol",
        "Cart/total",
        "return 0",
        "Time by phase",
        "Answers of language servers",
        "ty",
        "codex",
    ):
        assert part in page, part
    line = f"/dashboard/calls/{one['id']}"
    assert f'<a class="text" href="{line}">' in await visitor.see(f"/sessions/{session}")
    assert f'<a href="{line}" tabindex="-1"' in await visitor.see(f"/sessions/{session}")
    assert line in await visitor.see("/events?kind=call")


async def test_an_error_is_kept_with_its_message(central: RunningCentral, visitor: Visitor, project: Path) -> None:
    async with central.http() as http:
        session = await session_in(http, project)
        one = await called(http, session, "find_symbol", name_path_pattern="Cart", depth="deep")
        assert (one["outcome"], one["error"]) == ("error", "InvalidArguments")
        assert "depth" in one["error_text"]
        assert one["arguments"]["depth"] == "deep"
        (event,) = (await http.get("/api/v1/events", params={"kind": "call", "severity": "warning"})).json()["events"]
        assert "depth" in event["message"]
        assert [c["id"] for c in (await http.get("/api/v1/calls?failed=true")).json()["calls"]] == [one["id"]]
        (entry,) = (await http.get(f"/api/v1/sessions/{session}")).json()["log"]
        assert (entry["call"], entry["level"]) == (one["id"], "warning")
        assert "depth" in entry["text"]
    assert "depth" in shown(await visitor.see(f"/calls/{one['id']}"))


async def test_what_an_edit_made_is_linked(central: RunningCentral, visitor: Visitor, project: Path) -> None:
    async with central.http() as http:
        session = await session_in(http, project)
        body = "def total(self) -> int:\n        return 1\n"
        one = await called(
            http, session, "replace_symbol_body", name_path="Cart/total", relative_path="cart.py", body=body
        )
        (edit,) = one["edits"]
    assert f"/dashboard/edits/{edit}" in await visitor.see(f"/calls/{one['id']}")


async def test_secrets_are_not_kept_and_long_texts_are_cut(
    central: RunningCentral, project: Path, tmp_path: Path
) -> None:
    (project / ".env").write_text("PLAIN=very-private-value\n")
    async with central.http() as http:
        session = await session_in(http, project)
        shell = await called(
            http, session, "execute_shell_command", command="echo DB_PASSWORD=hunter22; echo " + "x" * 900
        )
        assert f"DB_PASSWORD={MASK}" in shell["arguments"]["command"]
        assert len(shell["arguments"]["command"]) < 400
        assert MASK in shell["answer"]
        environment = await called(http, session, "read_file", relative_path=".env")
        assert environment["answer"] in (WITHHELD, "")
        long = await called(http, session, "find_symbol", name_path_pattern="y" * 100_000, **{"z" * 5000: [1] * 5000})
        assert len(str(long["arguments"])) < 4000
    stored = b"".join(file.read_bytes() for file in (tmp_path / "home").rglob("*.db*"))
    assert b"hunter22" not in stored
    assert b"very-private-value" not in stored


async def test_a_running_call_has_a_page_and_says_what_it_is_about(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    path = "/calls/"
    async with central.http() as http, anyio.create_task_group() as tasks:
        session = await session_in(http, project)
        body = {"session": session, "arguments": {"command": "sleep 60"}}
        tasks.start_soon(lambda: http.post("/api/v1/tools/execute_shell_command", json=body))
        running: list[dict[str, Any]] = []
        with anyio.fail_after(60):
            while not running:
                running = (await http.get(f"/api/v1/sessions/{session}")).json()["running_calls"]
        one = running[0]
        assert (one["tool"], one["about"]) == ("execute_shell_command", "sleep 60")
        path += one["id"]
        page = shown(await visitor.see(path))
        assert "running" in page
        assert "sleep 60" in page
        assert "sleep 60" in shown(await visitor.see(f"/sessions/{session}"))
        await visitor.act("/cancel", {"session": session, "call": one["id"]})
    assert "cancelled" in shown(await visitor.see(path))


async def test_a_call_that_nobody_knows_is_not_found(central: RunningCentral, visitor: Visitor) -> None:
    assert (await visitor.http.get("/dashboard/calls/c-none")).status_code == 404
    async with central.http() as http:
        assert (await http.get("/api/v1/calls/c-none")).status_code == 404
        assert (await http.get("/api/v1/calls?since=yesterday")).status_code == 400
        assert (await http.get("/api/v1/calls?before=nan")).status_code == 400
