"""Users of a team on one server: each sees, changes and ends own things alone, by whatever way they ask."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.routing import Route

from serena_central.sessions.users import REFUSED_TOOLS
from serena_central.tools.families import CATALOGUE
from serena_central.web.pages.table import USER_ACTIONS
from tests.support.central import running_central
from tests.support.child import free_port, run_command, serving_child
from tests.support.generated_arguments import plausible
from tests.support.mcp import RawClient, text_of
from tests.support.team import SECRET, Team, added, running_team, signed_in

pytestmark = pytest.mark.anyio

OPEN_TO_USERS = {
    ("GET", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions"),
    ("GET", "/api/v1/sessions/{session}"),
    ("DELETE", "/api/v1/sessions/{session}"),
    ("POST", "/api/v1/sessions/{session}/close"),
    ("POST", "/api/v1/sessions/{session}/resume"),
    ("POST", "/api/v1/sessions/{session}/undo"),
    ("GET", "/api/v1/sessions/{session}/presence"),
    ("GET", "/api/v1/tools"),
    ("POST", "/api/v1/tools/{tool}"),
    ("GET", "/api/v1/projects"),
    ("POST", "/api/v1/conversations/close"),
    ("GET", "/api/v1/calls"),
    ("GET", "/api/v1/calls/{call}"),
    ("GET", "/api/v1/edits"),
    ("POST", "/api/v1/edits/{edit}/undo"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/schemas"),
    ("GET", "/api/v1/schemas/{name}"),
    ("POST", "/api/v1/dashboard/link"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/health"),
}
"""Routes that a user may ask, each of which is tested below; a route that is added later is for administrators."""

PAGES_FOR_USERS = {"/sessions", "/edits"}


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Team]:
    async with running_team(tmp_path) as team:
        yield team


async def test_every_route_is_for_administrators_unless_it_is_known_to_be_safe(team: Team) -> None:
    seen = set()
    for route in team.central.central.app.routes:
        if not isinstance(route, Route) or not route.path.startswith(("/api", "/metrics", "/health")):
            continue
        for method in route.methods - {"HEAD"}:
            if (method, route.path) in OPEN_TO_USERS:
                seen.add((method, route.path))
                continue
            path = route.path.replace("{", "").replace("}", "")
            answer = await team.ada.request(method, path)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "tool_refused"), (method, path)
    assert seen == OPEN_TO_USERS


async def test_what_is_anothers_is_not_there_over_the_api(team: Team) -> None:
    session, call, edit = await team.edited()
    before = (team.shop / "cart.py").read_text()
    bob = team.bob
    for method, path in (
        ("GET", f"/sessions/{session}"),
        ("DELETE", f"/sessions/{session}"),
        ("POST", f"/sessions/{session}/close"),
        ("POST", f"/sessions/{session}/resume"),
        ("POST", f"/sessions/{session}/undo"),
        ("GET", f"/sessions/{session}/presence"),
        ("GET", f"/tools?session={session}"),
        ("GET", f"/calls/{call}"),
        ("POST", f"/edits/{edit}/undo"),
    ):
        answer = await bob.request(method, f"/api/v1{path}")
        assert answer.status_code == 404, (method, path, answer.text)
    answer = await bob.post("/api/v1/tools/list_projects", json={"session": session})
    assert answer.status_code == 404
    for path, key in (("sessions", "sessions"), ("calls", "calls"), ("edits", "edits"), ("events", "events")):
        for chosen in ({}, {"session": session}) if path != "sessions" else ({},):
            found = (await bob.get(f"/api/v1/{path}", params=chosen)).json()[key]
            assert not [one for one in found if session in str(one) or "cart.py" in str(one)], (path, found)
    assert [one["root"] for one in (await bob.get("/api/v1/projects")).json()["projects"]] == []
    assert (await bob.get("/api/v1/edits", params={"project": str(team.shop)})).status_code == 404
    assert (team.shop / "cart.py").read_text() == before
    (mine,) = (await team.ada.get("/api/v1/sessions")).json()["sessions"]
    assert (mine["user"], mine["session_id"]) == ("ada", session)
    assert session in str((await team.owner.get("/api/v1/events")).json())
    assert {one["user"] for one in (await team.owner.get("/api/v1/sessions")).json()["sessions"]} == {"ada"}


async def test_what_is_ones_own_is_seen_undone_and_ended(team: Team) -> None:
    session, call, edit = await team.edited()
    assert (await team.ada.get(f"/api/v1/calls/{call}")).json()["edits"] == [edit]
    assert session in str((await team.ada.get("/api/v1/events", params={"kind": "edit"})).json())
    assert (await team.ada.post(f"/api/v1/edits/{edit}/undo")).status_code == 200
    assert "return 0" in (team.shop / "cart.py").read_text()
    assert (await team.ada.delete(f"/api/v1/sessions/{session}")).json()["terminated_by"] == "ada"


@pytest.mark.parametrize("tool", [tool.name for tool in CATALOGUE])
async def test_no_tool_leads_out_of_a_users_roots(many: Team, tool: str) -> None:
    found = CATALOGUE.get(tool)
    assert found is not None
    for where in ({"project": str(many.shop)}, {"project": "shop"}, {}):
        named = where if "project" in found.schema["properties"] else {}
        arguments = plausible(found) | named
        if not where:
            arguments |= {name: str(many.shop / "cart.py") for name in ("relative_path", "path") if name in arguments}
        answer = await many.bob.post(
            f"/api/v1/tools/{tool}", json={"arguments": arguments}, headers={"x-serena-project": str(many.shop)}
        )
        assert SECRET not in answer.text, (where, answer.text)
        if named:
            assert answer.status_code in (400, 403, 404), (where, answer.text)
        if answer.status_code == 200 and tool != "get_current_config":  # which shows the folder that the client named
            assert str(many.shop) not in answer.text, (where, answer.text)
    if tool in REFUSED_TOOLS:
        assert (answer.status_code, "administrators" in answer.text or "disabled" in answer.text) == (403, True)
    assert SECRET in (many.shop / "cart.py").read_text()
    assert sorted(path.name for path in many.shop.iterdir()) == [".git", "cart.py"]


@pytest.fixture(scope="module")
async def many(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Team]:
    """For tests that change nothing: Ada's project is open, and known by name."""
    async with running_team(tmp_path_factory.mktemp("team")) as team:
        opened = await team.ada.post(
            "/api/v1/tools/list_dir", json={"arguments": {"relative_path": ".", "project": str(team.shop)}}
        )
        assert opened.status_code == 200, opened.text
        yield team


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_mcp_belongs_to_its_user_in_both_eras(team: Team, era: Any) -> None:
    session, _, _ = await team.edited()
    own = {"authorization": team.bob.headers["authorization"]}
    async with team.central.raw(era, **own) as mcp:
        listed = {tool["name"] for tool in (await mcp.ask("tools/list"))["result"]["tools"]}
        assert "list_dir" in listed
        assert listed.isdisjoint(REFUSED_TOOLS)
        answer = await mcp.call("find_symbol", name_path_pattern=SECRET, project=str(team.shop))
        assert "There is no project" in text_of(answer)
        for text in (await mcp.send("resources/list"), await mcp.send("prompts/list")):
            assert SECRET not in text.text
            assert str(team.shop) not in text.text
    async with team.central.http(**own, x_serena_session=session) as http:
        refused = await RawClient(http, era).send("tools/list")
        assert "list_dir" not in refused.text


async def test_a_rotated_token_is_refused_and_a_revoked_user_loses_everything(team: Team) -> None:
    session, _, _ = await team.edited()
    answer = (await team.owner.post("/api/v1/users/ada/rotate")).json()
    assert (await team.ada.get("/api/v1/sessions")).status_code == 401
    team.ada.headers["authorization"] = f"Bearer {answer['token']}"
    assert [one["session_id"] for one in (await team.ada.get("/api/v1/sessions")).json()["sessions"]] == [session]
    assert (await team.owner.delete("/api/v1/users/ada")).status_code == 200
    assert (await team.ada.get("/api/v1/sessions")).status_code == 401
    ended = (await team.owner.get(f"/api/v1/sessions/{session}")).json()
    assert "revoked" in ended["terminated_by"]
    again = await added(team.owner, "ada")
    team.ada.headers["authorization"] = f"Bearer {again}"
    assert (await team.ada.get("/api/v1/sessions")).json()["sessions"] == []  # another person, perhaps
    kinds = [one["kind"] for one in (await team.owner.get("/api/v1/events", params={"kind": "user"})).json()["events"]]
    assert kinds == ["user.added", "user.revoked", "user.rotated", "user.added", "user.added"]


async def test_tokens_are_in_no_file_event_or_answer(team: Team, tmp_path: Path) -> None:
    token = team.ada.headers["authorization"].partition(" ")[2]
    await team.edited()
    said = [await team.owner.get(f"/api/v1/{path}") for path in ("users", "events", "sessions")]
    assert not any(token in answer.text for answer in said)
    assert "digest" not in said[0].text
    await team.central.central.store.writer.flush()
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    "body",
    [
        {"name": "Ada"}, {"name": ""}, {"name": "a" * 33}, {"name": "../x"}, {"name": "ada"}, {},
        {"name": "x", "roots": ["src"]}, {"name": "x", "roots": ["/a/../etc"]}, {"name": "x", "roots": ["/a/**"]},
        {"name": "x", "roots": ["/a"] * 101},
    ],
)  # fmt: skip
async def test_wrong_users_are_refused(many: Team, body: dict[str, Any]) -> None:
    assert (await many.owner.post("/api/v1/users", json=body)).status_code == 400


async def test_an_administrator_of_the_team_may_do_everything_but_revoke_that_very_user(team: Team) -> None:
    session, _, _ = await team.edited()
    token = await added(team.owner, "eve", admin=True)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=team.central.url, headers=headers) as eve:
        assert (await eve.get(f"/api/v1/sessions/{session}")).status_code == 200
        assert (await eve.delete("/api/v1/users/eve")).status_code == 400
        assert (await eve.delete("/api/v1/users/bob")).status_code == 200


async def test_the_dashboard_lets_a_user_in_by_token_and_shows_own_things(team: Team) -> None:
    session, _, edit = await team.edited()
    async with httpx.AsyncClient(base_url=team.central.url, timeout=60) as http:
        outside = await http.get("/dashboard")
        assert (outside.status_code, "Or sign in with your token" in outside.text) == (401, True)
        wrong = await http.post("/dashboard/sign-in", data={"token": "x" * 43}, headers={"origin": team.central.url})
        assert (wrong.status_code, "No user has this token" in wrong.text) == (401, True)
        foreign = await http.post("/dashboard/sign-in", data={"token": "x"}, headers={"origin": "http://evil.example"})
        assert foreign.status_code == 403
        bob = await signed_in(team, http, team.bob)
        assert (await http.get("/dashboard", follow_redirects=True)).url.path == "/dashboard/sessions"
        assert session not in await bob.see("/sessions")
        assert "cart.py" not in await bob.see("/edits")
        csrf = await bob.csrf("/sessions")
        for path, fields in (("/terminate", {"session": session}), ("/undo", {"edit": edit})):
            await http.post(f"/dashboard{path}", data={"csrf": csrf} | fields, headers={"origin": team.central.url})
        assert (await team.ada.get(f"/api/v1/sessions/{session}")).json()["terminated_by"] is None
        assert "return 1" in (team.shop / "cart.py").read_text()
        await team.owner.delete("/api/v1/users/bob")
        assert (await http.get("/dashboard/sessions")).status_code == 401
    async with httpx.AsyncClient(base_url=team.central.url, timeout=60) as http:
        ada = await signed_in(team, http, team.ada)
        assert session in await ada.see("/sessions")
        assert "cart.py" in await ada.see("/edits")
        csrf = await ada.csrf("/sessions")
        headers = {"origin": team.central.url}
        await http.post("/dashboard/undo", data={"csrf": csrf, "edit": edit}, headers=headers)
        assert "return 0" in (team.shop / "cart.py").read_text()
        await http.post("/dashboard/terminate", data={"csrf": csrf, "session": session}, headers=headers)
        ended = (await team.ada.get(f"/api/v1/sessions/{session}")).json()
        assert ended["terminated_by"] == "ada in the dashboard"


async def test_a_new_token_ends_what_was_opened_with_the_one_before(team: Team) -> None:
    address, session = team.central.url, (await team.edited())[0]
    authorization = team.ada.headers["authorization"]
    link = (await team.ada.post("/api/v1/dashboard/link")).json()["path"]
    async with (
        httpx.AsyncClient(base_url=address, timeout=60) as thief,
        httpx.AsyncClient(base_url=address, timeout=60) as bob,
        team.central.raw("handshake", authorization=authorization) as client,
        team.central.raw("modern", authorization=authorization) as modern,
    ):
        await signed_in(team, thief, team.ada)
        await signed_in(team, bob, team.bob)
        asked = modern.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        streams = [
            await thief.send(thief.build_request("GET", "/dashboard/live-pages?page=/dashboard/sessions"), stream=True),
            await client.http.send(
                client.http.build_request("GET", "/mcp", headers=client.headers("", {})), stream=True
            ),
            await modern.http.send(asked, stream=True),
        ]
        with anyio.fail_after(30):
            rotated = await team.owner.post("/api/v1/users/ada/rotate")
            assert [stream.status_code for stream in streams] == [200, 200, 200]
            for stream in streams:
                await stream.aread()
                await stream.aclose()
        assert (await thief.get("/dashboard/sessions")).status_code == 401
        assert (await thief.get(link)).status_code == 401
        assert (await client.send("tools/list")).status_code == 401
        assert (await bob.get("/dashboard/sessions")).status_code == 200
        team.ada.headers["authorization"] = f"Bearer {rotated.json()['token']}"
        assert (await team.ada.get(f"/api/v1/sessions/{session}")).json()["terminated_by"] is None
        await signed_in(team, thief, team.ada)
        assert (await thief.get("/dashboard/sessions")).status_code == 200


async def test_a_sign_in_by_the_token_before_stays_refused_after_a_restart(tmp_path: Path) -> None:
    async with running_team(tmp_path) as team, httpx.AsyncClient(base_url=team.central.url) as http:
        await signed_in(team, http, team.ada)
        token = (await team.owner.post("/api/v1/users/ada/rotate")).json()["token"]
        cookies = dict(http.cookies)
    async with running_central(tmp_path) as again, httpx.AsyncClient(base_url=again.url, cookies=cookies) as http:
        with anyio.fail_after(30):
            while again.central.users.of_token(token.encode()) is None:  # the accounts are being read
                await anyio.sleep(0.05)
        assert (await http.get("/dashboard/sessions")).status_code == 401


async def test_a_user_who_begins_ever_more_sessions_locks_nobody_else_out(tmp_path: Path) -> None:
    async with running_team(tmp_path, {"sessions.max_sessions": 8}) as team:

        async def listed(http: httpx.AsyncClient, session: str) -> httpx.Response:
            body = {"arguments": {}, "session": session}
            return await http.post("/api/v1/tools/list_projects", json=body)

        assert [(await listed(team.ada, f"ada-{n}")).status_code for n in range(6)] == [200] * 4 + [429] * 2
        assert "limit of 4 sessions for one user" in (await listed(team.ada, "ada-4")).text
        opened = RawClient(team.ada, "handshake")
        with pytest.raises(AssertionError, match="limit of 4 sessions"):
            await opened.open()
        for http, session in ((team.ada, "ada-0"), (team.bob, "bob-0"), (team.owner, "owner-0")):
            assert (await listed(http, session)).status_code == 200
        await team.ada.post("/api/v1/sessions/ada-1/close")
        assert (await listed(team.ada, "ada-4")).status_code == 200


async def test_every_page_and_action_of_the_dashboard_is_for_administrators_unless_known_to_be_safe(team: Team) -> None:
    async with httpx.AsyncClient(base_url=team.central.url, timeout=60) as http:
        bob = await signed_in(team, http, team.bob)
        csrf = await bob.csrf("/sessions")
        safe = {"/enter", "/sign-in", "/sign-out", "/static/{name:path}", "", "/", "/{nowhere:path}", "/live-pages"}
        for route in (await team.central.central.dashboard.pages()).router.routes:
            if not isinstance(route, Route) or not route.path.startswith("/dashboard"):
                continue
            path = route.path.removeprefix("/dashboard")
            if path in safe or path.removeprefix("/live") in PAGES_FOR_USERS or path == "/live":
                continue
            asked = route.path.replace("{", "").replace("}", "")
            if "POST" in (route.methods or ()):
                if path in USER_ACTIONS:
                    continue
                answer = await http.post(asked, data={"csrf": csrf}, headers={"origin": team.central.url})
            else:
                answer = await http.get(asked)
            assert answer.status_code == 403, (path, answer.status_code, answer.text[:300])
        assert (await http.get("/dashboard/live")).status_code == 403
        assert (await http.get("/dashboard/live-pages", params={"page": "/dashboard/events"})).status_code == 404


async def test_the_command_line_adds_users_with_and_without_a_server(tmp_path: Path) -> None:
    first = await run_command(tmp_path, "users", "add", "ada", "--root", str(tmp_path), "--json")
    assert first.code == 0, first.err
    assert (await run_command(tmp_path, "users", "add", "ada")).code != 0
    async with serving_child(tmp_path) as child:
        headers = {"authorization": f"Bearer {first.json['token']}"}
        async with httpx.AsyncClient(base_url=child.url, headers=headers) as ada:
            with anyio.fail_after(30):
                while (await ada.get("/api/v1/sessions")).status_code == 401:
                    await anyio.sleep(0.05)
            second = await run_command(tmp_path, "users", "rotate", "ada")
            assert second.out.startswith("sct_")
            assert (await ada.get("/api/v1/sessions")).status_code == 401
            ada.headers["authorization"] = f"Bearer {second.out.strip()}"
            assert (await ada.get("/api/v1/sessions")).status_code == 200
            assert (await run_command(tmp_path, "users", "revoke", "ada")).out == "Revoked ada.\n"
            assert (await ada.get("/api/v1/sessions")).status_code == 401
        listed = await run_command(tmp_path, "users", "list")
        assert "revoked" in listed.out
    assert (await run_command(tmp_path, "users", "revoke", "nobody")).code != 0


async def test_users_are_not_changed_behind_a_server_that_runs_and_can_not_be_asked(tmp_path: Path) -> None:
    """In another container that shares the home, or frozen: it would still let in who was revoked."""
    first = await run_command(tmp_path, "users", "add", "ada", "--root", str(tmp_path), "--json")
    async with serving_child(tmp_path) as child:
        said = json.loads(child.server_file.read_text())
        child.server_file.write_text(json.dumps(said | {"url": f"http://127.0.0.1:{free_port()}/mcp"}))
        revoked = await run_command(tmp_path, "users", "revoke", "ada")
        assert (revoked.code, revoked.out) == (3, "")
        assert "runs, but nothing answers at" in revoked.err
        headers = {"authorization": f"Bearer {first.json['token']}"}
        async with httpx.AsyncClient(base_url=child.url, headers=headers) as ada:
            with anyio.fail_after(30):
                while (await ada.get("/api/v1/sessions")).status_code == 401:
                    await anyio.sleep(0.05)
