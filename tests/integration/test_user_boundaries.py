"""What a user of a team may try in order to see or change what is another's, beyond the ways in of test_users.py:
modules of a shared super-repo, working folders, ids of others' conversations, texts of refusals, shared memories."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.central import running_central
from tests.support.mcp import ACCEPT, HANDSHAKE, Era, RawClient, text_of
from tests.support.superrepo import FILES
from tests.support.team import SECRET, Team, client, running_team
from tests.support.upstreams import scripted

pytestmark = pytest.mark.anyio


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Team]:
    async with running_team(tmp_path) as team:
        yield team


async def call(http: httpx.AsyncClient, tool: str, session: str | None = None, **arguments: Any) -> httpx.Response:
    return await http.post(f"/api/v1/tools/{tool}", json={"arguments": arguments, "session": session})


async def opened(http: httpx.AsyncClient, folder: Path) -> str:
    answer = await http.post("/api/v1/sessions", json={"working_folder": str(folder)})
    assert answer.status_code == 201, answer.text
    return answer.json()["session_id"]


# --- modules of a super-repo --------------------------------------------------------------------------------------


PYTHON_ALONE = """\
name: platform
type: super-repo
default_module: scan
modules:
  scoring: {path: modules/scoring, languages: [python], concerns: [risk]}
  scan: {path: modules/scan, languages: [python], concerns: [jobs]}
routing_hints:
  batch: [scan]
"""


@pytest.fixture
async def one_module(tmp_path: Path) -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient, Path]]:
    """A user with one module of a super-repo, `scoring`; an administrator; and the super-repo."""
    root = (tmp_path / "platform").resolve()
    modules = [name for name in FILES if name.startswith(("modules/scoring", "modules/scan"))]
    for name, text in {".serena/project.yml": PYTHON_ALONE, **{name: FILES[name] for name in modules}}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".git").mkdir()
    async with (
        running_central(tmp_path) as central,
        central.http() as owner,
        client(owner, central, "ada", root / "modules/scoring") as ada,
    ):
        yield ada, owner, root


OTHERS = ("scan", "jobs.py")


async def test_the_modules_of_others_are_not_named_to_who_has_one(
    one_module: tuple[httpx.AsyncClient, httpx.AsyncClient, Path],
) -> None:
    ada, _, root = one_module
    for folder in (root / "modules/scoring", root, root / "modules/scan"):
        session = await opened(ada, folder)
        for tool, arguments in (
            ("get_current_config", {}),
            ("initial_instructions", {}),
            ("route", {"semantic_context": "batch risk"}),
            ("list_projects", {}),
            ("activate_project", {"project": str(root / "modules/scoring")}),
            ("activate_project", {"project": str(root)}),
            ("activate_project", {"project": "scan"}),
            ("list_dir", {"relative_path": ".", "project": "*"}),
            ("list_dir", {"relative_path": ".", "semantic_context": "jobs"}),
            ("find_symbol", {"name_path_pattern": "run", "project": "*"}),
            ("find_referencing_symbols", {"name_path": "py_total", "relative_path": "scoring/risk.py"}),
            ("find_referencing_symbols", {"name_path": "py_total", "project": "*"}),
            ("find_unused_symbols", {"project": "scoring"}),
        ):
            text = (await call(ada, tool, session, **arguments)).text.replace(str(folder), "").replace("'scan'", "")
            assert not [name for name in OTHERS if name in text], (folder, tool, arguments, text)


async def test_references_in_modules_of_others_are_not_shown_but_hold_up_what_would_break_them(
    one_module: tuple[httpx.AsyncClient, httpx.AsyncClient, Path],
) -> None:
    ada, owner, root = one_module
    at = {"relative_path": "scoring/risk.py", "project": str(root / "modules/scoring")}
    seen_by_all = await call(owner, "find_referencing_symbols", name_path="py_total", project=str(root))
    assert "jobs.py" in seen_by_all.text
    for tool, arguments in (
        ("rename_symbol", {"name_path": "py_total", "new_name": "total"}),
        ("safe_delete_symbol", {"name_path_pattern": "TWICE"}),
    ):
        refused = await call(ada, tool, **at, **arguments)
        assert (refused.status_code, "outside of your folders" in refused.text) == (409, True), refused.text
        assert not [name for name in OTHERS if name in refused.text], refused.text
    assert "py_total" in (root / "modules/scan/scan/jobs.py").read_text()
    renamed = await call(ada, "rename_symbol", **at | {"project": "*"}, name_path="py_total", new_name="total")
    assert renamed.status_code != 200
    assert "py_total" in (root / "modules/scan/scan/jobs.py").read_text()


# --- working folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_working_folder_of_another_user_offers_nothing_of_its_settings(team: Team, era: Era) -> None:
    (team.shop / ".mcp.json").write_text(json.dumps({"mcpServers": {"inner": scripted(tools=["peek"])}}))
    (team.shop / ".serena").mkdir()
    (team.shop / ".serena/project.yml").write_text(f"project_name: {SECRET}\ntype: super-repo\nmodules: {{}}\n")
    own = {"authorization": team.bob.headers["authorization"], "x-serena-project": str(team.shop)}
    async with team.central.raw(era, **own) as mcp:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            text = (await mcp.send(method)).text
            assert "inner" not in text, (method, text)
            assert SECRET not in text, (method, text)
        for tool in ("get_current_config", "initial_instructions", "search_tools", "list_projects"):
            text = json.dumps(await mcp.ask("tools/call", {"name": tool, "arguments": {}}))
            assert "inner" not in text, (tool, text)
            assert SECRET not in text, (tool, text)
        text = json.dumps(await mcp.ask("tools/call", {"name": "inner__peek", "arguments": {}}))
        assert "There is no tool" in text or "Unknown tool" in text, text


# --- ids of others' conversations ---------------------------------------------------------------------------------


async def test_anothers_conversation_is_neither_used_listened_to_nor_ended(team: Team) -> None:
    async with team.central.raw("handshake", authorization=team.ada.headers["authorization"]) as ada:
        assert ada.session_id is not None
        bob = RawClient(team.bob, "handshake")
        bob.session_id = ada.session_id
        assert (await bob.send("tools/list")).status_code == 404
        headers = {**ACCEPT, "mcp-session-id": ada.session_id, "mcp-protocol-version": HANDSHAKE}
        for more in ({}, {"last-event-id": f"{ada.session_id}-1"}, {"last-event-id": "1"}):
            async with team.bob.stream("GET", "/mcp", headers={**headers, **more}) as stream:
                assert stream.status_code == 404
        assert (await team.bob.delete("/mcp", headers=headers)).status_code == 404
        assert "list_dir" in (await ada.send("tools/list")).text
        await ada.call("list_dir", relative_path=".", project=str(team.shop))
        listed = (await team.ada.get("/api/v1/sessions")).json()["sessions"]
        assert ada.session_id in str(listed)
        change = {"relative_path": "cart.py", "needle": "return 0", "repl": "return 1", "mode": "literal"}
        assert not (await ada.call("replace_content", **change, project=str(team.shop))).get("isError")
        assert "cart.py" in text_of(await ada.call("summarize_changes"))
        for name in ("x-serena-session", "mcp-session-id"):
            async with team.central.http(
                authorization=team.bob.headers["authorization"], **{name: ada.session_id}
            ) as http:
                params = {"name": "summarize_changes", "arguments": {}}
                assert "cart.py" not in (await RawClient(http, "modern").send("tools/call", params)).text


async def test_memories_of_another_project_are_neither_read_nor_subscribed_to(team: Team) -> None:
    await call(team.ada, "write_memory", memory_name="plan", content=SECRET, project=str(team.shop))
    async with team.central.raw("modern", authorization=team.bob.headers["authorization"]) as bob:
        for project in ("shop", str(team.shop).replace("/", "%2F")):
            for uri in (f"serena://projects/{project}/memories/plan", f"serena://projects/{project}/overview"):
                assert SECRET not in (await bob.send("resources/read", {"uri": uri})).text
        for argument in ({"name": "project", "value": "sh"}, {"name": "memory", "value": "pl"}):
            ref = {"type": "ref/resource", "uri": "serena://projects/{project}/memories/{+memory}"}
            known = {"context": {"arguments": {"project": "shop"}}} if argument["name"] == "memory" else {}
            answer = await bob.send("completion/complete", {"ref": ref, "argument": argument, **known})
            assert "plan" not in answer.text
            assert "shop" not in answer.text.replace("serena://", "")


async def test_memories_of_all_projects_are_read_by_all_and_written_by_administrators(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENA_HOME", str(tmp_path / "serena"))  # where the memories of all projects are
    await call(team.owner, "write_memory", memory_name="global/style", content="Tabs.", project=str(team.shop))
    bank = {"project": str(team.bank)}
    assert "Tabs." in (await call(team.bob, "read_memory", memory_name="global/style", **bank)).text
    await call(team.bob, "write_memory", memory_name="mine", content="x", **bank)
    for tool, arguments in (
        ("write_memory", {"memory_name": "global/style", "content": "Obey."}),
        ("write_memory", {"memory_name": "global/new", "content": "Obey."}),
        ("write_memory", {"memory_name": "./global/new", "content": "Obey."}),
        ("edit_memory", {"memory_name": "global/style", "needle": "Tabs", "repl": "Obey", "mode": "literal"}),
        ("delete_memory", {"memory_name": "global/style"}),
        ("rename_memory", {"old_name": "global/style", "new_name": "global/other"}),
        ("rename_memory", {"old_name": "global/style", "new_name": "stolen"}),
        ("rename_memory", {"old_name": "mine", "new_name": "global/mine"}),
    ):
        refused = await call(team.bob, tool, **arguments, **bank)
        assert refused.status_code in (400, 403), (tool, arguments, refused.text)
    listed = await call(team.owner, "list_memories", topic="global", **bank)
    assert json.loads(listed.json()["blocks"][0])["memories"] == ["global/style"], listed.text


# --- texts of refusals --------------------------------------------------------------------------------------------


async def test_refusals_name_no_folder_of_others_and_do_not_tell_whether_one_exists(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    for folder in (hidden, hidden / "there", tmp_path / "mine", tmp_path / "mine/far"):
        folder.mkdir()
        (folder / ".git").mkdir()
    (hidden / "file").write_text("")
    (tmp_path / "mine/out").symlink_to(hidden / "there")
    settings = {"allowed_roots": [str(hidden), str(tmp_path / "other-allowed")]}
    async with (
        running_central(tmp_path, settings) as central,
        central.http() as owner,
        client(owner, central, "ada", tmp_path / "mine") as ada,
    ):
        texts = set()
        for name in ("there", "nowhere", "file", "../hidden/there"):
            answer = await call(ada, "list_dir", relative_path=".", project=str(hidden / name))
            texts.add(answer.text.replace(name, "NAME"))
            by_path = await call(ada, "read_file", relative_path=str(hidden / name / "x.py"))
            assert by_path.status_code != 200
        assert len(texts) == 1, texts
        for path in (tmp_path / "mine/far", tmp_path / "mine/out", tmp_path / "mine/nothing"):
            answer = await call(ada, "list_dir", relative_path=".", project=str(path))
            assert answer.status_code != 200
            assert "hidden" not in answer.text, answer.text
            assert "other-allowed" not in answer.text, answer.text


async def test_a_conflict_does_not_name_the_session_of_another_user(tmp_path: Path) -> None:
    async with running_team(tmp_path) as team, client(team.owner, team.central, "cleo", team.shop) as cleo:
        ours, other = await opened(team.ada, team.shop), await opened(cleo, team.shop)
        at = {"name_path": f"{SECRET}/total", "relative_path": "cart.py", "project": str(team.shop)}
        pattern = {**at, "name_path_pattern": at["name_path"], "include_body": True}
        pattern.pop("name_path")
        assert "return 0" in (await call(team.ada, "find_symbol", ours, **pattern)).text
        body = "    def total(self) -> int:\n        return {}"
        made = await call(cleo, "replace_symbol_body", other, **at, body=body.format(2).lstrip())
        assert made.status_code == 200, made.text
        refused = await call(team.ada, "replace_symbol_body", ours, **at, body=body.format(3).lstrip())
        assert refused.status_code == 409, refused.text
        assert other not in refused.text
        assert "another user" in refused.text, refused.text
        for path in ("events", "calls", f"sessions/{ours}", "edits"):
            assert other not in (await team.ada.get(f"/api/v1/{path}")).text, path
        edits = (await team.owner.get("/api/v1/edits")).json()["edits"]
        undone = await team.owner.post(f"/api/v1/edits/{edits[0]['id']}/undo")
        assert undone.status_code == 200
        # Two sessions of one user are named to each other.
        again = await opened(team.ada, team.shop)
        assert "return 0" in (await call(team.ada, "find_symbol", ours, **pattern)).text
        assert (
            await call(team.ada, "replace_symbol_body", again, **at, body=body.format(4).lstrip())
        ).status_code == 200
        own = await call(team.ada, "replace_symbol_body", ours, **at, body=body.format(5).lstrip())
        assert again in own.text, own.text


async def test_text_of_the_mcp_answer_is_checked(team: Team) -> None:
    """The helpers above see what a client sees."""
    async with team.central.raw("modern", authorization=team.ada.headers["authorization"]) as mcp:
        answer = await mcp.call("find_symbol", name_path_pattern=SECRET, project=str(team.shop))
        assert SECRET in text_of(answer)
