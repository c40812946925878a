"""/api and /health of the whole server, over real HTTP."""

import json
from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("project_name: shop\n")
    return root


async def test_health_needs_no_token_and_tells_nothing_secret(central: RunningCentral) -> None:
    async with httpx.AsyncClient(base_url=central.url) as stranger:
        response = await stranger.get("/health")
    assert response.status_code == 200
    assert set(response.json()) == {"status", "version", "uptime_s"}


async def test_a_clock_that_is_set_back_makes_no_server_older_or_younger(
    central: RunningCentral, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = central.central.dashboard.parts.uptime()
    async with central.http() as http:
        for now in (0.0, 2e9):
            monkeypatch.setattr("time.time", lambda now=now: now)
            said = [(await http.get(path)).json()["uptime_s"] for path in ("/health", "/api/v1/stats")]
            lines = (await http.get("/metrics")).text.splitlines()
            said += [float(line.split()[1]) for line in lines if line.startswith("serena_central_uptime_seconds ")]
            assert len(said) == 3
            assert all(before <= one + 0.001 < 1e6 for one in said)
            monkeypatch.undo()


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/tools", "/api/v1/shutdown", "/mcp", "/nowhere", "/"])
async def test_every_other_route_needs_the_token(central: RunningCentral, path: str) -> None:
    async with httpx.AsyncClient(base_url=central.url) as stranger:
        for method in ("GET", "POST", "DELETE"):
            response = await stranger.request(method, path)
            assert response.status_code == 401
            assert response.json()["error"]["kind"] == "unauthorized"


async def test_a_script_opens_calls_in_and_closes_a_session_of_its_own(central: RunningCentral, project: Path) -> None:
    async with central.http() as http:
        opened = (
            await http.post("/api/v1/sessions", json={"client_name": "nightly", "working_folder": str(project)})
        ).json()
        assert opened["client_name"] == "nightly"
        assert opened["state"] == "connected"
        session_id = opened["session_id"]
        called = await http.post(
            "/api/v1/tools/list_dir", json={"session": session_id, "arguments": {"relative_path": "."}}
        )
        assert called.status_code == 200, called.text
        assert "cart.py" in called.json()["blocks"][0]
        shown = (await http.get(f"/api/v1/sessions/{session_id}")).json()
        assert shown["tool_call_count"] == 1
        assert shown["tools"][0]["tool"] == "list_dir"
        assert "list_dir" in shown["log"][-1]["text"]
        closed = (await http.post(f"/api/v1/sessions/{session_id}/close")).json()
        assert closed["state"] == "disconnected"


async def test_a_session_that_works_by_its_folder_belongs_to_that_project(
    central: RunningCentral, project: Path
) -> None:
    async with central.raw("modern", x_serena_session="by-folder", x_serena_project=str(project)) as client:
        await client.call("list_dir", relative_path=".")
        found = [
            (await client.http.get("/api/v1/sessions", params={"project": named})).json()["sessions"]
            for named in ("shop", str(project), "other")
        ]
        assert [[one["session_id"] for one in some] for some in found] == [["by-folder"], ["by-folder"], []]
        assert (found[0][0]["project_name"], found[0][0]["active_project_name"]) == ("shop", None)
        (shown,) = (await client.http.get("/api/v1/projects")).json()["projects"]
        assert shown["sessions"] == 1


async def test_a_session_tells_what_people_want_to_know(central: RunningCentral, project: Path) -> None:
    async with central.raw("handshake") as client:
        await client.call("activate_project", project=str(project))
        (session,) = (await client.http.get("/api/v1/sessions")).json()["sessions"]
    assert session["client_name"] == "raw"
    assert session["state"] == "connected"
    assert (session["active_project_name"], session["active_project_root"]) == ("shop", str(project))
    assert (session["project_name"], session["project_root"]) == ("shop", str(project))
    assert session["tool_call_count"] == 1
    assert {"session_id", "created_at", "last_activity", "active_modes"} <= set(session)


async def test_sessions_are_filtered_and_limited(central: RunningCentral) -> None:
    async with central.http() as http:
        for name in ("a", "b", "b"):
            await http.post("/api/v1/sessions", json={"client_name": name})
        assert (await http.get("/api/v1/sessions", params={"client": "b"})).json()["total"] == 2
        assert (await http.get("/api/v1/sessions", params={"state": "idle"})).json()["sessions"] == []
        limited = (await http.get("/api/v1/sessions", params={"limit": 1})).json()
        assert (len(limited["sessions"]), limited["total"]) == (1, 3)
        for wrong in ("-1", "x", "1001", "9" * 5000, "٣"):
            response = await http.get("/api/v1/sessions", params={"limit": wrong})
            assert (response.status_code, response.json()["error"]["kind"]) == (400, "invalid_arguments")


async def test_a_killed_session_stays_dead_whatever_door_it_comes_through(central: RunningCentral) -> None:
    async with central.raw("modern", x_serena_session="proxy-1") as client:
        await client.call("list_projects")
        killed = await client.http.delete("/api/v1/sessions/proxy-1", params={"by": "ann"})
        assert killed.json()["state"] == "terminated"
        assert (await client.call("list_projects"))["isError"]
        refused = await client.http.post("/api/v1/tools/list_projects", json={"session": "proxy-1"})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "session_terminated")
        assert "ann" in refused.json()["error"]["message"]
        await client.http.post("/api/v1/sessions/proxy-1/revive")
        assert not (await client.call("list_projects"))["isError"]


async def test_tools_are_listed_with_what_they_take(central: RunningCentral) -> None:
    async with central.http() as http:
        tools = {tool["name"]: tool for tool in (await http.get("/api/v1/tools")).json()["tools"]}
    assert "relative_path" in tools["list_dir"]["input_schema"]["properties"]
    assert tools["find_symbol"]["read_only"]


async def test_a_symbol_is_found_over_api_and_mcp_alike(central: RunningCentral, project: Path) -> None:
    wanted = {"name_path_pattern": "Cart/total", "project": str(project)}
    async with central.http() as http:
        answer = (await http.post("/api/v1/tools/find_symbol", json={"arguments": wanted})).json()
    (found,) = json.loads(answer["blocks"][0])
    assert (found["name_path"], found["relative_path"]) == ("Cart/total", "cart.py")
    for era in ("handshake", "modern"):
        async with central.raw(era) as client:
            result = await client.call("find_symbol", **wanted)
            assert json.loads(result["content"][0]["text"]) == [found]
    async with central.http() as http:
        (shown,) = (await http.get("/api/v1/projects")).json()["projects"]
        assert (shown["name"], shown["open"], shown["root"]) == ("shop", True, str(project))
        (server,) = (await http.get("/api/v1/servers")).json()["servers"]
        assert server["project"] == "shop"
        assert server["state"] in ("idle", "in_use")
        assert server["calls"] >= 1
        assert {"idle_s", "age_s", "pid", "memory_bytes", "leases", "restarts", "root", "server"} <= set(server)
        stopped = await http.post(f"/api/v1/servers/{server['id']}/stop")
        assert stopped.status_code == 200, stopped.text
        (server,) = (await http.get("/api/v1/servers")).json()["servers"]
        assert server["state"] == "disconnected"
        assert (await http.post(f"/api/v1/servers/{server['id']}/restart")).status_code == 200
        (server,) = (await http.get("/api/v1/servers", params={"state": "idle"})).json()["servers"]
        assert server["pid"]


async def test_events_and_statistics_tell_what_happened(central: RunningCentral) -> None:
    async with central.http(x_serena_project="/nowhere") as http:
        await http.post("/api/v1/tools/list_projects")
        events = (await http.get("/api/v1/events", params={"kind": "call"})).json()
        assert events["events"][0]["kind"] == "call.finished"
        statistics = (await http.get("/api/v1/stats")).json()
    assert statistics["calls"] == 1
    assert statistics["tools"][0]["tool"] == "list_projects"
    assert statistics["sessions"] == {"connected": 1}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/api/v1/sessions/s-none", None, 404, "session_not_found"),
        ("DELETE", "/api/v1/sessions/s-none", None, 404, "session_not_found"),
        ("POST", "/api/v1/sessions/s-none/close", None, 404, "session_not_found"),
        ("POST", "/api/v1/tools/no_tool", b"{}", 404, "unknown_tool"),
        ("POST", "/api/v1/tools/list_dir", b"not json", 400, "invalid_arguments"),
        ("POST", "/api/v1/tools/list_dir", b"[1]", 400, "invalid_arguments"),
        ("POST", "/api/v1/tools/list_dir", b'{"arguments": {"nonsense": 1}}', 400, "invalid_arguments"),
        (
            "POST",
            "/api/v1/tools/list_dir",
            b'{"arguments": {"relative_path": ".", "project": "/"}}',
            403,
            "project_refused",
        ),
        (
            "POST",
            "/api/v1/tools/list_dir",
            b'{"arguments": {"relative_path": ".", "project": "none"}}',
            404,
            "unknown_project",
        ),
        ("POST", "/api/v1/tools/list_dir", b'{"session": "../x"}', 400, "invalid_arguments"),
        ("POST", "/api/v1/tools/list_dir", b"[" * 5000, 400, "invalid_arguments"),
        ("POST", "/api/v1/servers/none/stop", None, 404, "not_found"),
        ("GET", "/api/v1/nothing", None, 404, "not_found"),
        ("GET", "/api/sessions", None, 404, "not_found"),
        ("GET", "/api/v1/sessions?stat=idle", None, 400, "invalid_arguments"),
        ("GET", "/api/v1/stats?limit=1", None, 400, "invalid_arguments"),
        ("PUT", "/api/v1/sessions", None, 405, "method_not_allowed"),
    ],
)
async def test_errors_have_a_kind_a_message_and_the_right_status(
    central: RunningCentral, method: str, path: str, body: bytes | None, status: int, kind: str
) -> None:
    async with central.http() as http:
        response = await http.request(method, path, content=body)
    assert (response.status_code, response.json()["error"]["kind"]) == (status, kind)
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tasks", {"instruction": "Look around", "max_usdd": 1}),
        ("warm", {"folder": "/nowhere", "module": ["api"]}),
        ("tools/find_symbol", {"arguments": {}, "progres": True}),
        ("sessions", {"workingfolder": "/nowhere"}),
        ("plans", {"text": "waves: []", "comands": "x"}),
        ("users", {"name": "ada", "root": ["/srv"]}),
    ],
)
async def test_a_misspelt_key_of_a_body_is_refused_by_name(
    central: RunningCentral, path: str, body: dict[str, object]
) -> None:
    async with central.http() as http:
        refused = await http.post(f"/api/v1/{path}", json=body)
    assert refused.status_code == 400
    assert f"`{list(body)[-1]}`" in refused.json()["error"]["message"]


async def test_what_is_not_there_says_where_to_look(central: RunningCentral) -> None:
    async with central.http() as http:
        for method, path in (("GET", "/"), ("GET", "/api/v1/nowhere"), ("DELETE", "/api/v1/tools/find_symbol")):
            refused = await http.request(method, path)
            assert refused.status_code == (405 if method == "DELETE" else 404)
            assert "/api/v1/openapi.json" in refused.json()["error"]["message"]


async def test_shutdown_stops_the_server(central: RunningCentral) -> None:
    async with central.http() as http:
        assert (await http.post("/api/v1/shutdown")).status_code == 202
    with anyio.fail_after(60):
        while central.server.servers[0].is_serving():
            await anyio.sleep(0.01)


async def test_the_server_answers_to_the_names_it_was_given_and_to_no_others(tmp_path: Path) -> None:
    names = {"central_server_names": ["box.example", "other.example:8443"]}
    async with running_central(tmp_path, names) as central, central.http() as http:
        statuses = {
            host: (await http.get("/api/v1/stats", headers={"host": host})).status_code
            for host in ("box.example", "box.example:24280", "other.example:8443", "other.example", "evil.example")
        }
    assert list(statuses.values()) == [200, 200, 200, 403, 403]
