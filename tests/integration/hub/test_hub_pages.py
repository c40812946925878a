"""Upstreams over /api and in the dashboard: seen, restarted, stopped; names and texts of theirs are harmless."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visitor, hidden_fields, shown
from tests.support.central import RunningCentral, running_central
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

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
    assert "gone did not run" in said.text
    assert (await visitor.act("/upstreams/restart", {"upstream": "none"})).status_code == 404
    assert (await visitor.act("/upstreams/stop", {"upstream": "one", "csrf": "0" * 64})).status_code == 403


async def test_what_happened_names_an_upstream_once_and_leads_to_it(visitor: Visitor, central: RunningCentral) -> None:
    await asked(central, "/upstreams/one")
    await asked(central, "/upstreams/gone")
    for path in ("", "/events"):
        page = await visitor.see(path)
        assert page.count('href="/dashboard/upstreams/one"') >= 2, path  # it started, and told its tools
        assert "starting → ready" in page
        assert "one: " not in page
    attention = shown((await visitor.see("")).partition("Needs attention")[2].partition("</section>")[0])
    assert "gone · starting → paused" in attention


async def test_restarting_counts_what_ran(central: RunningCentral) -> None:
    await asked(central, "/upstreams/gone")
    ((run,),) = [(await asked(central, "/upstreams/gone"))["runs"]]
    assert run["state"] == "paused"
    assert await asked(central, "/upstreams/gone/restart", "POST") == {"upstream": "gone", "ended": 0}
    await asked(central, "/upstreams/one")
    assert await asked(central, "/upstreams/one/restart", "POST") == {"upstream": "one", "ended": 1}


async def test_an_upstream_that_never_started_is_forgotten_with_its_entry(
    central: RunningCentral, tmp_path: Path
) -> None:
    await asked(central, "/upstreams/gone")
    settings_of_user(tmp_path / "claude", {"one": scripted()}, disabledMcpServers=["gone"])
    async with central.http() as http:
        assert (await http.get(f"{V1}/upstreams/gone")).status_code == 404
    assert [one["name"] for one in (await asked(central, "/upstreams"))["upstreams"]] == ["one"]


async def test_a_description_of_an_upstream_is_text(visitor: Visitor, tmp_path: Path) -> None:
    tool = {"name": "bad", "description": "<img src=x onerror=alert(1)>", "inputSchema": {"type": "object"}}
    settings_of_user(tmp_path / "claude", {"one": scripted(tools=[tool])})
    html = await visitor.see("/upstreams/one")
    assert "&lt;img src=x" in html
    assert "<img src=x" not in html


COUNTING: dict[str, Any] = {
    "name": "count",
    "description": "<b>Counts</b>",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "times": {"type": "integer"},
            "kind": {"$ref": "#/$defs/Kind"},
            "loud": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "places": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["times"],
        "$defs": {"Kind": {"enum": ["one", "all"]}},
    },
}


@pytest.fixture
def counting(central: RunningCentral, tmp_path: Path) -> Path:
    """The log of the upstream `one`, which has a tool that only reads."""
    log = tmp_path / "log.jsonl"
    settings_of_user(tmp_path / "claude", {"one": scripted(log=str(log), tools=[COUNTING])})
    return log


def calls_in(log: Path) -> list[dict[str, Any]]:
    return [one["read"]["params"] for one in events_in(log, "tools/call")]


async def test_a_tool_of_an_upstream_that_reads_is_tried_at_once(
    visitor: Visitor, counting: Path, tmp_path: Path
) -> None:
    assert 'href="/dashboard/tools/one__count"' in await visitor.see("/upstreams/one")
    page = await visitor.see("/tools/one__count")
    assert 'href="/dashboard/upstreams/one"' in page
    assert "&lt;b&gt;Counts" in page
    assert "<option>all</option>" in page
    assert "<option>false</option>" in page
    assert "<b>shop" not in page
    given = {"arg-text": '{"a": [1]}', "arg-times": "3", "arg-kind": "all", "arg-loud": "true", "arg-places": "[1, 2]"}
    answer = await visitor.act("/tools/one__count", {**given, "project-root": str(tmp_path / "<b>shop")})
    assert '{\n  "a": [\n    1\n  ]\n}' in shown(answer.text)
    assert re.search(r"Answer <span class=\"soft\">[\d,.]+ ms · <a href=\"/dashboard/calls/c-", answer.text)
    (call,) = calls_in(counting)
    assert (call["name"], call["arguments"]) == (
        "count",
        {"text": '{"a": [1]}', "times": 3, "kind": "all", "loud": True, "places": [1, 2]},
    )
    wrong = shown((await visitor.act("/tools/one__count", {"arg-times": "many"})).text)
    assert "Failed" in wrong
    assert "times: 'many' is not of type 'integer'" in wrong
    assert len(calls_in(counting)) == 1


async def test_a_tool_of_an_upstream_that_may_change_something_asks_first(visitor: Visitor, counting: Path) -> None:
    asked = await visitor.act("/tools/one__echo", {"arg-text": "<i>hello"})
    assert "may make changes" in asked.text
    assert "text: &lt;i&gt;hello" in asked.text
    assert calls_in(counting) == []
    done = await visitor.act("/tools/one__echo", hidden_fields(asked.text))
    assert "&lt;i&gt;hello" in done.text
    assert [one["arguments"] for one in calls_in(counting)] == [{"text": "<i>hello"}]
    failed = await visitor.act("/tools/one__error", {"arg-text": "no disk", "step": "apply"})
    assert "Failed" in failed.text
    assert "failed: no disk" in failed.text
    wrong = await visitor.act("/tools/one__strict", {"arg-count": "0"})
    assert "Failed" in wrong.text
    assert 'value="apply"' not in wrong.text
    parts = await visitor.act("/tools/one__all", {"step": "apply"})
    assert "[image image/png" in parts.text
    assert '"three": null' in shown(parts.text)


async def test_rules_hold_for_what_is_tried(visitor: Visitor, counting: Path, tmp_path: Path) -> None:
    server = scripted(log=str(counting), tools=[COUNTING])
    settings_of_user(tmp_path / "claude", {"one": server}, permissions={"deny": ["mcp__one__count"]})
    refused = shown((await visitor.act("/tools/one__count", {"arg-times": "3"})).text)
    assert "Failed" in refused
    assert "mcp__one__count" in refused
    assert calls_in(counting) == []


async def test_a_tool_is_tried_in_a_project_that_has_its_server(
    visitor: Visitor, central: RunningCentral, counting: Path, tmp_path: Path
) -> None:
    for name in ("none", "gone", "one__none", "one__"):
        missing = await visitor.http.get(f"/dashboard/tools/{name}")
        assert missing.status_code == 404
        assert "There is no tool" in missing.text
    elsewhere = await visitor.act("/tools/one__count", {"arg-times": "1", "project-root": "/"})
    assert elsewhere.status_code == 404
    assert (await visitor.act("/tools/one__count", {"arg-times": "1", "csrf": "0" * 64})).status_code == 403
    assert calls_in(counting) == []


HOSTILE: list[dict[str, Any]] = [
    {"a b": True, "c": {"type": 7, "enum": 3, "anyOf": [1, {}], "description": 5}, "d": {"default": {"x": "<b>"}}},
    {"x": {"$ref": "#/$defs/x"}, "y": {"$ref": "#/nowhere/0"}, "z": {"$ref": 5}, "dry_run": {"type": "boolean"}},
    {f"p{number}": {"type": "string"} for number in range(1000)},
]


async def test_hostile_schemas_have_forms(visitor: Visitor, central: RunningCentral, tmp_path: Path) -> None:
    loop = {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}}
    tools = [
        {"name": f"bad{number}", "inputSchema": {"type": "object", "properties": properties, "$defs": loop}}
        for number, properties in enumerate(HOSTILE)
    ]
    settings_of_user(tmp_path / "claude", {"one": scripted(tools=tools)})
    page = ""
    for number, properties in enumerate(HOSTILE):
        page = await visitor.see(f"/tools/one__bad{number}")
        assert page.count('name="arg-') == min(len(properties), 200)
        assert "&lt;b&gt;shop" in page
        asked = await visitor.act(f"/tools/one__bad{number}", {"arg-x": "1", "arg-c": "[[[", "arg-p1": "1"})
        assert "Call it with these arguments?" in shown(asked.text)
    assert "800 further parameters" in page
