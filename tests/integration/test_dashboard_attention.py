"""What needs attention on the overview: each by a real cause, with a link to where something can be done."""

import re
from collections.abc import AsyncGenerator
from html import unescape
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from serena_central.core.event_kinds import ServerInstalled, ServerMissing, ServerSettingsProblem
from serena_central.core.events import Severity
from tests.support.browser import Visitor, shown, visiting
from tests.support.central import RunningCentral, running_central
from tests.support.scripted import REFERENCES, SYMBOLS, scripted_project, scripted_ty
from tests.support.upstreams import settings_of_user

pytestmark = pytest.mark.anyio

MISSING_ZLS = "shop: zls, the language server for zig, is not installed."

TOTAL = {"name_path": "Cart/total", "relative_path": "cart.py"}


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    scripted_ty(tmp_path)
    settings = {"pool.breaker_failures": 2, "pool.read_retries": 0, "pool.restart_delay_s": 0.01}
    async with running_central(tmp_path, settings) as running:
        yield running


@pytest.fixture
async def http(central: RunningCentral) -> AsyncGenerator[httpx.AsyncClient]:
    async with central.http() as client:
        yield client


async def call(http: httpx.AsyncClient, tool: str, *, session: str | None = None, **arguments: Any) -> httpx.Response:
    body: dict[str, Any] = {"arguments": arguments} | ({"session": session} if session else {})
    return await http.post(f"/api/v1/tools/{tool}", json=body)


async def problem(visitor: Visitor, words: str) -> tuple[str, str]:
    """The overview's problem with these words, as soon as it is there, and the page that it leads to."""
    with anyio.fail_after(60):
        while True:
            html = await visitor.see()
            for found in re.findall(r'(?s)<li class="\w+"><a href="/dashboard.*?</li>', html):
                if words in shown(found):
                    address = re.search(r'href="/dashboard([^"]*)"', found)
                    assert address
                    return " ".join(shown(found).split()), await visitor.see(unescape(address[1]))
            await anyio.sleep(0.05)


async def test_all_is_well_at_first(visitor: Visitor) -> None:
    assert "No problems" in await visitor.see()


async def test_a_server_that_crashed_leads_to_its_page(
    visitor: Visitor, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    root = scripted_project(tmp_path, crash_on=[REFERENCES])
    assert (await call(http, "find_referencing_symbols", project=str(root), **TOTAL)).status_code != 200
    said, page = await problem(visitor, "ty in shop: crash")
    assert "The next call restarts it" in said
    assert "ty in shop" in page
    assert "Restart" in page


async def test_an_open_breaker_leads_to_the_button_that_closes_it(
    visitor: Visitor, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    root = scripted_project(tmp_path, exit_at_start=3)
    for _ in range(2):
        await call(http, "find_referencing_symbols", project=str(root), **TOTAL)
    said, page = await problem(visitor, "failed 2 times")
    assert "close its breaker" in said
    assert 'action="/dashboard/servers/close-breaker"' in page


async def test_an_index_that_is_being_filled_is_no_alarm(
    visitor: Visitor, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    root = scripted_project(tmp_path, hang_on=[SYMBOLS])
    assert (await call(http, "list_dir", project=str(root), relative_path=".")).status_code == 200
    assert "0 1 wait" in " ".join(shown(await visitor.see("/projects")).split())
    assert "No problems" in await visitor.see()


async def test_a_missing_server_is_told_with_the_command_that_gets_it_also_after_a_restart(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "main.zig").write_text("pub fn main() void {}\n")
    async with running_central(tmp_path) as running, running.http() as http, visiting(running) as visitor:
        assert (await call(http, "list_dir", project=str(root), relative_path=".")).status_code == 200
        said, page = await problem(visitor, MISSING_ZLS)
        assert "To install it: " in said
        assert str(root) in page
    async with running_central(tmp_path) as running, running.http() as http, visiting(running) as visitor:
        assert not running.central.projects.open_projects()
        await problem(visitor, MISSING_ZLS)
        assert "start failed" not in shown(await visitor.see())  # said once
        running.central.bus.publish(ServerInstalled(server="zls", via="found"))
        assert MISSING_ZLS not in await visitor.see()
        later = ServerMissing(
            message="dart is not installed", server="dart", project="shop", root=str(root), how_to_get=""
        )
        running.central.bus.publish(later)
    async with running_central(tmp_path) as running, visiting(running) as visitor:
        await problem(visitor, "dart is not installed")
        assert MISSING_ZLS not in await visitor.see()


async def test_failures_come_before_warnings(central: RunningCentral, visitor: Visitor) -> None:
    for name, severity in (("ty", Severity.WARNING), ("gopls", Severity.ERROR), ("zls", Severity.WARNING)):
        central.central.bus.publish(ServerSettingsProblem(message="a problem", severity=severity, server=name))
    found = re.findall(r'<li class="(\w+)"><a href="/dashboard/events\?kind[^>]*>(\w+)', await visitor.see())
    assert found == [("error", "gopls"), ("warning", "zls"), ("warning", "ty")]


async def test_a_refused_edit_leads_to_its_call(visitor: Visitor, http: httpx.AsyncClient, tmp_path: Path) -> None:
    root = scripted_project(tmp_path)
    one, other = [
        (await http.post("/api/v1/sessions", json={"client_name": name})).json()["session_id"]
        for name in ("hasty", "quick")
    ]
    reading = {"name_path_pattern": "Cart/total", "include_body": True, "project": str(root)}
    assert (await call(http, "find_symbol", session=one, **reading)).status_code == 200
    for session, body, status in ((other, "return 1", 200), (one, "return 2", 409)):
        body = f"def total(self) -> int:\n        {body}"
        done = await call(http, "replace_symbol_body", session=session, project=str(root), body=body, **TOTAL)
        assert done.status_code == status, done.text
    said, page = await problem(visitor, "was refused")
    assert "An edit in shop was refused (replace_symbol_body)" in said
    assert f"/dashboard/sessions/{one}" in page
    assert "EditConflict" in page
    assert "hasty" in page


async def test_settings_that_are_broken_are_told_with_what_is_in_force(
    visitor: Visitor, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    root = tmp_path / "settled"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    file = root / ".claude" / "settings.json"
    file.write_text('{"model": "opus"}')
    await call(http, "list_dir", project=str(root), relative_path=".")
    file.write_text('{"model": ')
    await call(http, "list_dir", project=str(root), relative_path=".")
    said, page = await problem(visitor, "error in settings")
    assert "settled: 1 error in settings" in said
    assert "what it said before stays in force" in page
    assert "&#34;opus&#34;" in page  # the last good version counts, and is shown
    file.write_text('{"model": "haiku"}')
    assert "error in settings" not in await visitor.see()


async def test_what_is_wrong_in_a_users_settings_is_one_problem_of_all_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    settings_of_user(tmp_path / "claude", {"<name>": {"command": "x"}})
    async with running_central(tmp_path) as central, central.http() as http, visiting(central) as visitor:
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            await call(http, "list_dir", relative_path=".", project=str(tmp_path / name))
        said, _ = await problem(visitor, "and 2 other projects: 1 error in settings")
        assert "is no name for a server" in said
        assert shown(await visitor.see()).count("error in settings") == 1
