"""The first answers of a server are made without the libraries that take long to import."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from serena_central.testing.server import Era
from tests.support.child import PATIENCE_S, serving_child
from tests.support.mcp import RawClient, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite]

HEAVY = (
    "alembic",
    "anthropic",
    "cryptography",
    "genai_prices",
    "httpx",
    "httpx2",
    "jinja2",
    "jsonschema",
    "markdown_it",
    "mcp",
    "mcp.server.session",
    "mcp_types",
    "networkx",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "ray",
    "regex",
    "sqlalchemy",
    "sse_starlette",
    "tree_sitter",
)
"""Not to be imported before the first answers: what they are needed for can wait, or comes later in a server's life."""

ERAS: tuple[Era, ...] = ("handshake", "modern")

WITHOUT_END = """
import sys
from serena_central.core import start_up
start_up.QUIET_S = start_up.LONGEST_S = 1e9
from serena_central.cli.__main__ import main
sys.exit(main())
"""
"""A server whose start is never over, so that what it imports was imported by a request."""


def modules_in(log: Path) -> set[str]:
    """What `-X importtime` lists."""
    return {line.rpartition("|")[2].strip() for line in log.read_text().splitlines()}


async def test_a_find_after_each_handshake_imports_nothing_heavy(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    imports = tmp_path / "serve.log"
    program = (sys.executable, "-X", "importtime", "-c", WITHOUT_END)
    async with serving_child(tmp_path, program=program) as child, child.http() as http:
        before, asked = RawClient(http, "handshake"), RawClient(http, "modern")
        await before.open()
        await before.call("activate_project", project=str(root))
        found = await before.call("find_symbol", name_path_pattern="Cart/total")
        again = await asked.call("find_symbol", name_path_pattern="Cart/total", project=str(root))
        imported = modules_in(imports)
        await before.ask("prompts/get", {"name": 5})
        later = modules_in(imports)
    assert "cart.py" in text_of(found)
    assert "cart.py" in text_of(again)
    assert "starlette" in imported
    assert sorted(imported.intersection(HEAVY)) == []
    assert later.issuperset(("mcp.server.session", "pydantic"))  # so they would have been seen
    # What this era needs no part of: the SDK's clients, its framework for servers, and what seals states.
    assert later.isdisjoint(("mcp", "mcp.client.session", "mcp.server.mcpserver", "httpx2", "cryptography"))


SERVER = "import sys; from serena_central.cli.__main__ import main; sys.exit(main())"


COMPLETION = {"ref": {"type": "ref/prompt", "name": "onboarding"}, "argument": {"name": "project", "value": ""}}


async def test_a_server_that_only_plain_requests_come_to_does_without_the_sdk(tmp_path: Path) -> None:
    """Also after its start, and where it refuses one: what agents do when they begin."""
    imports = tmp_path / "serve.log"
    program = (sys.executable, "-X", "importtime", "-c", SERVER)
    async with serving_child(tmp_path, program=program) as child, child.http() as http:
        clients = [RawClient(http, era) for era in ERAS]
        for client in clients:
            await client.open()
        before, modern = clients
        assert (await modern.ask("server/discover"))["result"]["instructions"]
        notices = {"notifications": {"toolsListChanged": True, "resourcesListChanged": True}}
        streams = [
            await http.send(http.build_request("GET", "/mcp", headers=before.headers("", {})), stream=True),
            await http.send(modern.request("subscriptions/listen", notices), stream=True),
        ]
        assert (await before.ask("logging/setLevel", {"level": "info"}))["result"] == {}
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert (await before.ask(method, {"uri": "serena://projects/none/memories/a"}))["result"] == {}
        with anyio.fail_after(PATIENCE_S):
            while "serena_central.store.list_queries" not in modules_in(imports):  # so the start is over
                await anyio.sleep(0.05)
        for client in clients:
            assert (await client.ask("tools/list"))["result"]["tools"]
            assert (await client.ask("prompts/list"))["result"]["prompts"]
            assert (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
            assert (await client.ask("resources/list"))["result"]["resources"] == []
            assert (await client.ask("prompts/get", {"name": "onboarding"}))["result"]["messages"]
            unknown = {"uri": "serena://projects/none/overview"}
            assert (await client.ask("resources/read", unknown))["error"]["data"] == unknown
            assert (await client.ask("completion/complete", COMPLETION))["result"]["completion"]["values"] == []
            assert "session" in text_of(await client.call("get_current_config"))
        killed = [one["session_id"] for one in (await http.get("/api/v1/sessions")).json()["sessions"]]
        for session in killed:
            assert (await http.delete(f"/api/v1/sessions/{session}")).status_code == 200
        refused = [await client.send("tools/list") for client in clients]
        for stream in streams:
            assert stream.status_code == 200
            await stream.aclose()
        assert len(killed) == len(clients)
        assert all("was terminated" in response.text for response in refused)
    assert modules_in(imports).isdisjoint(("mcp", "mcp.server.session", "mcp_types", "pydantic", "sse_starlette"))


async def test_servers_that_a_client_starts_itself_and_this_very_one_need_no_hub(tmp_path: Path) -> None:
    """Claude Code's file has at least the entry by which it came."""
    own = {"command": "/usr/bin/serena-proxy", "args": []}
    other = {"command": "true", "args": []}
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / ".claude.json").write_text(json.dumps({"mcpServers": {"serena": own, "other": other}}))
    imports = tmp_path / "serve.log"
    program = (sys.executable, "-X", "importtime", "-c", SERVER)
    async with serving_child(tmp_path, program=program) as child, child.http() as http:
        for era in ERAS:
            client = RawClient(http, era, name="claude-code")
            await client.open()
            assert (await client.ask("tools/list"))["result"]["tools"]
            assert (await client.ask("prompts/list"))["result"]["prompts"]
            assert "session" in text_of(await client.call("get_current_config"))
        assert modules_in(imports).isdisjoint(("mcp_types", "pydantic", "serena_central.hub.hub"))
        codex = RawClient(http, "handshake", name="codex")  # reads no such file
        await codex.open()
        assert (await codex.ask("tools/list"))["result"]["tools"]
        assert "pydantic" in modules_in(imports)


async def test_a_client_that_ends_at_once_waits_for_no_import(tmp_path: Path) -> None:
    """A proxy waits for less than half a second: on a busy machine the SDK takes longer."""
    imports, statuses = tmp_path / "serve.log", list[int]()
    program = (sys.executable, "-X", "importtime", "-c", WITHOUT_END)
    async with (
        serving_child(tmp_path, program=program) as child,
        child.http() as http,
        anyio.create_task_group() as tasks,
    ):
        client = RawClient(http, "handshake")
        await client.open()
        kept = client.headers("", {})
        session = f"/api/v1/sessions/{client.session_id}"

        async def follow() -> None:
            statuses.append((await http.get("/mcp", headers=kept)).status_code)

        tasks.start_soon(follow)
        with anyio.fail_after(PATIENCE_S):
            while not (await http.get(session)).json()["open_streams"]:
                await anyio.sleep(0.01)
        assert (await http.delete("/mcp", headers=kept)).status_code == 200
        assert (await http.get(session)).json()["state"] == "disconnected"
        imported = modules_in(imports)
        assert (await client.notify("notifications/initialized")).status_code == 404
    assert "mcp" not in imported
    assert statuses == [200]  # its stream has ended
