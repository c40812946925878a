"""Upstreams over /api and in the dashboard: seen, restarted, stopped; names and texts of theirs are harmless."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = pytest.mark.anyio

V1 = "/api/v1"


@pytest.fixture
async def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[RunningCentral]:
    """A server whose user has two upstreams, and knows one project."""
    user = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user))
    settings_of_user(user, {"one": scripted(), "gone": {"command": "/nowhere/to/be/found"}})
    root = tmp_path / "<b>shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart: ...\n")
    async with running_central(tmp_path, QUICK) as running:
        async with running.http() as http:
            wanted = {"arguments": {"name_path_pattern": "Cart", "project": str(root)}}
            assert (await http.post(f"{V1}/tools/find_symbol", json=wanted)).status_code == 200
        yield running


async def asked(central: RunningCentral, path: str, method: str = "GET") -> Any:
    async with central.http() as http:
        answer = await http.request(method, V1 + path)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_an_upstream_is_listed_shown_stopped_and_started_by_a_call(
    central: RunningCentral, tmp_path: Path
) -> None:
    listed = (await asked(central, "/upstreams"))["upstreams"]
    assert [(one["name"], one["state"], one["pid"]) for one in listed] == [
        ("gone", "stopped", None),
        ("one", "stopped", None),
    ]
    details = await asked(central, "/upstreams/one")
    assert {"one__echo", "one__who"} <= {tool["offered_as"] for tool in details["tools"]}
    ((run,),) = [(await asked(central, "/upstreams/one"))["runs"]]
    assert run["state"] == "ready"
    assert run["memory_bytes"] > 1_000_000
    async with central.http() as http:
        body = {"arguments": {"text": "hello"}}
        folder = {"X-Serena-Project": str(tmp_path / "<b>shop")}
        called = await http.post(f"{V1}/tools/one__echo", json=body, headers=folder)
        assert called.json()["blocks"] == ["hello"]
    ((run,),) = [(await asked(central, "/upstreams/one"))["runs"]]
    assert run["calls"] == 1
    assert await asked(central, "/upstreams/one/stop", "POST") == {"upstream": "one", "ended": 1}
    assert await asked(central, "/upstreams/one/stop", "POST") == {"upstream": "one", "ended": 0}
    ((run,),) = [(await asked(central, "/upstreams/one"))["runs"]]
    assert (run["state"], run["pid"]) == ("stopped", None)
    async with central.http() as http:
        for path in ("/upstreams/none", "/upstreams/none/restart"):
            answer = await http.request("POST" if path.endswith("restart") else "GET", V1 + path)
            assert answer.status_code == 404
            assert "mcp list" in answer.json()["error"]["message"]


async def test_pages_show_what_runs_and_its_buttons_end_it(visitor: Visitor, central: RunningCentral) -> None:
    await asked(central, "/upstreams/one")
    await asked(central, "/upstreams/gone")
    page = shown(await visitor.see("/upstreams"))
    assert "1 running" in page
    assert "/nowhere/to/be/found" in page
    assert "Its tools are not known: its command &#39;/nowhere/to/be/found&#39;" in await visitor.see("/upstreams/gone")
    page = await visitor.see("/upstreams/one")
    assert "one__echo" in page
    assert "tools/list" in page  # the log
    assert "all sessions" in await visitor.see("/upstreams?q=upstream.py&state=ready")
    assert "None of 2 upstreams matches" in await visitor.see("/upstreams?q=upstream.py&state=failed")
    said = await visitor.act("/upstreams/stop", {"upstream": "one"}, {"hx-request": "true"})
    assert "one was stopped" in said.text
    assert 'id="stop"' not in await visitor.see("/upstreams/one")
    said = await visitor.act("/upstreams/restart", {"upstream": "gone"}, {"hx-request": "true"})
    assert "gone was ended" in said.text
    assert (await visitor.act("/upstreams/restart", {"upstream": "none"})).status_code == 404
    assert (await visitor.act("/upstreams/stop", {"upstream": "one", "csrf": "0" * 64})).status_code == 403


async def test_a_description_of_an_upstream_is_text(visitor: Visitor, tmp_path: Path) -> None:
    tool = {"name": "bad", "description": "<img src=x onerror=alert(1)>", "inputSchema": {"type": "object"}}
    settings_of_user(tmp_path / "claude", {"one": scripted(tools=[tool])})
    html = await visitor.see("/upstreams/one")
    assert "&lt;img src=x" in html
    assert "<img src=x" not in html
