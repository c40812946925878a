"""The command line against a server that runs as a child; and against servers that fail, by scripted HTTP."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from serena_central.cli.dashboard import page_address
from serena_central.cli.main import main
from serena_central.cli.remote import Remote
from tests.support.child import Child, Ended, environment, free_port, run_command, serving_child, until_gone
from tests.support.mcp import RawClient, text_of
from tests.support.scripted_http import answer, scripted_http

pytestmark = pytest.mark.anyio


async def test_calls_by_options_by_json_and_by_the_folder_one_stands_in(serving: Child, project: Path) -> None:
    def found(ended: Ended) -> Any:
        assert (ended.code, ended.err) == (0, "")
        return ended.json

    wanted = ["--name-path-pattern", "Cart/total", "--include-body"]
    by_options = found(await run_command(serving.folder, "call", "find_symbol", "--project", str(project), *wanted))
    assert by_options[0]["relative_path"] == "cart.py"
    assert by_options[0]["body_location"] == {"start_line": 1, "end_line": 2, "start_column": 4}
    assert by_options[0]["body"].startswith("def total(self)")
    arguments = json.dumps({"name_path_pattern": "Cart/total", "include_body": True, "project": str(project)})
    assert found(await run_command(serving.folder, "call", "find_symbol", "--arguments", arguments)) == by_options
    here = await run_command(serving.folder, "call", "find_symbol", *wanted, "--json", cwd=project)
    assert found(here) == {"answer": by_options, "notes": []}
    by_kind = await run_command(
        serving.folder,
        *("call", "find_symbol", "--name-path-pattern", "Cart"),
        *("--include-kinds", "Class", "--include-kinds", "6", "--substring-matching"),
        cwd=project,
    )
    assert [one["name_path"] for one in found(by_kind)] == ["Cart"]


@pytest.mark.parametrize("name", ["jürgen's shop", "店"])
async def test_the_folder_one_stands_in_may_have_any_name(serving: Child, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    (folder / ".git").mkdir(parents=True)
    (folder / "cart.py").write_text("class Cart: ...\n")
    ended = await run_command(serving.folder, "call", "list_dir", "--relative-path", ".", cwd=folder)
    assert (ended.code, ended.json["files"]) == (0, ["cart.py"]), ended.err
    ended = await run_command(serving.folder, "task", "run", "Look around", cwd=folder)
    assert "There is no project" not in ended.err


async def test_several_projects_are_named_as_in_any_other_call(serving: Child, project: Path) -> None:
    other = project.parent / "a, b"
    (other / ".git").mkdir(parents=True)
    (other / "cart.py").write_text("class Cart: ...\n")
    for named in (json.dumps([str(project), str(other)]), json.dumps([str(other), "*"])):
        ended = await run_command(
            *(serving.folder, "call", "find_symbol", "--name-path-pattern", "Cart", "--project", named)
        )
        assert ended.code == 0, ended.err
        assert other.name in ended.json
        assert len(ended.json) > 1


async def test_tools_tell_how_they_are_called(serving: Child) -> None:
    listed = await run_command(serving.folder, "call")
    assert listed.code == 0
    offered, optional = listed.out.split("included_optional_tools")
    assert "find_symbol" in offered
    assert "find_unused_symbols" in optional
    assert "replace_lines" not in listed.out, "it is refused where the setting does not name it"
    of_an_optional_tool = await run_command(serving.folder, "call", "find_unused_symbols", "--help")
    assert of_an_optional_tool.code == 0
    assert "--relative-path" in of_an_optional_tool.out
    shown = await run_command(serving.folder, "call", "find_symbol", "--help")
    assert shown.code == 0
    for option in ("--name-path-pattern", "--include-body / --no-include-body", "--arguments", "--json", "[required]"):
        assert option in shown.out
    of_the_command = await run_command(serving.folder, "call", "--help")
    assert of_the_command.code == 0
    assert "Examples:" in of_the_command.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["no_such_tool"], 2, "There is no tool named 'no_such_tool'"),
        (["replace_lines"], 2, "The setting included_optional_tools enables it"),
        (["find_symbol", "--nonsense", "1"], 2, "--nonsense"),
        (["find_symbol", "--depth", "deep"], 2, "--depth"),
        (["find_symbol", "--arguments", "{"], 2, "not JSON"),
        (["find_symbol", "--arguments", "[1]"], 2, "JSON object"),
        (["find_symbol", "--arguments", '{"nonsense": 1}'], 2, "no parameter 'nonsense'"),
        (["find_symbol"], 2, "name_path_pattern"),
        (["find_symbol", "--name-path-pattern", "A", "--project", "/"], 1, "can't be a project"),
        (["read_file", "--relative-path", "none.py", "--project", "{project}"], 1, "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_wrong_calls_end_with_a_reason_and_a_code(
    serving: Child, project: Path, arguments: list[str], code: int, says: str
) -> None:
    asked = [argument.replace("{project}", str(project)) for argument in arguments]
    ended = await run_command(serving.folder, "call", *asked)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert any(line.startswith("serena-central: ") for line in ended.err.splitlines())
    assert "Error: " not in ended.err


@pytest.mark.parametrize("words", [(), ("languages",)])
async def test_a_group_without_a_command_shows_its_help(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = await run_command(tmp_path, *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"Usage: {' '.join(['serena-central', *words])} [OPTIONS] COMMAND")
    assert ended.err.count("Usage: ") == 1
    assert "Commands:" in ended.err


async def test_sessions_are_listed_and_killed(serving: Child, project: Path) -> None:
    async with serving.http() as http:
        client = RawClient(http, "handshake", name="victim")
        await client.open()
        await client.call("activate_project", project=str(project))
        listed = await run_command(serving.folder, "sessions")
        assert client.session_id is not None
        (line,) = [line for line in listed.out.splitlines() if client.session_id in line]
        assert "victim 1" in line
        assert "shop" in line
        as_json = (await run_command(serving.folder, "sessions", "--json")).json
        assert client.session_id in [one["session_id"] for one in as_json]
        killed = await run_command(serving.folder, "kill", client.session_id)
        assert (killed.code, killed.out) == (0, f"{client.session_id} was terminated.\n")
        refused = await client.call("list_projects")
        assert refused["isError"]
        assert "terminated by" in text_of(refused)
        assert client.session_id in (await run_command(serving.folder, "sessions", "--state", "terminated")).out
        bystander = RawClient(http, "modern", name="bystander")
        assert "shop" in text_of(await bystander.call("list_projects"))
    unknown = await run_command(serving.folder, "kill", "s-nobody")
    assert unknown.code == 1
    assert "no session 's-nobody'" in unknown.err


async def test_status_and_projects_show_what_runs(child: Child, project: Path) -> None:
    assert "No language server is running" in (await run_command(child.folder, "status")).out
    assert "No projects yet" in (await run_command(child.folder, "projects")).out
    await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(project)})
    (server,) = await child.servers()
    shown = (await run_command(child.folder, "status")).out
    assert child.url in shown
    (line,) = [line for line in shown.splitlines() if "ty" in line.split()]
    assert str(project) in line
    assert str(server["pid"]) in line.split()
    status = (await run_command(child.folder, "status", "--json")).json
    assert (status["status"], status["servers"][0]["pid"]) == ("ok", server["pid"])
    assert status["policy"]["idle_ttl_s"] == 300
    assert status["policy"]["memory_budget_bytes"] > 0
    assert status["store"]["dropped"] == {}
    listed = (await run_command(child.folder, "projects")).out
    (line,) = [line for line in listed.splitlines() if line.startswith("shop ")]
    assert "open" in line
    (known,) = (await run_command(child.folder, "projects", "--json")).json
    assert (known["root"], known["files"]) == (str(project), 1)


async def test_stop_ends_the_server_and_all_that_it_started(child: Child, project: Path) -> None:
    await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(project)})
    tree = child.tree()
    stopped = await run_command(child.folder, "stop", "--json")
    assert (stopped.code, stopped.json) == (0, {"stopped": child.process.pid})
    assert await child.process.wait() == 0
    await until_gone(tree)
    assert not child.server_file.exists()
    again = await run_command(child.folder, "stop")
    assert again.code == 3
    assert "serena-central serve" in again.err


@pytest.mark.parametrize("command", [["call", "list_projects"], ["status"], ["sessions"], ["kill", "x"], ["projects"]])
async def test_every_command_that_needs_a_server_says_that_none_runs(tmp_path: Path, command: list[str]) -> None:
    ended = await run_command(tmp_path, *command)
    assert (ended.code, ended.out) == (3, "")
    assert "serena-central serve" in ended.err


@pytest.mark.parametrize("announced", ["", "[]", '{"url": 1}', '{"url": "http://127.0.0.1:1/mcp", "pid": 1e400}'])
async def test_an_announcement_that_can_not_be_read_is_none(tmp_path: Path, announced: str) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home/token").write_text("x" * 40)
    (tmp_path / "home/token").chmod(0o600)
    (tmp_path / "home/server.json").write_text(announced)
    for command in ("stop", "status"):
        ended = await run_command(tmp_path, command)
        assert (ended.code, ended.err.count("\n")) == (3, 1)
        assert "No server is running" in ended.err
    assert "Traceback" not in (await run_command(tmp_path, "doctor", PATH=os.defpath)).err


async def test_a_token_that_can_not_be_used_is_not_called_a_server_that_does_not_run(child: Child) -> None:
    (child.folder / "home/token").chmod(0o644)
    try:
        ended = await run_command(child.folder, "status")
    finally:
        (child.folder / "home/token").chmod(0o600)
    assert ended.code == 3
    assert "readable by other users" in ended.err


async def test_settings_are_shown_with_their_origins(tmp_path: Path, project: Path) -> None:
    (tmp_path / "user" / ".serena").mkdir(parents=True)
    (tmp_path / "user" / ".serena" / "serena_config.yml").write_text("tool_timeout_s: 7\nread_only: true\n")
    (project / ".serena").mkdir()
    (project / ".serena" / "project.yml").write_text("project_name: store\ntool_timeout_s: 9\n")
    more = {"SERENA_CENTRAL_SERVER_PORT": "4711"}
    shown = await run_command(tmp_path, "config", "show", "--origins", "--json", **more)
    settings = {row["key"]: row for row in shown.json["settings"]}
    assert settings["tool_timeout_s"]["value"] == "7.0"
    assert "serena_config.yml" in settings["tool_timeout_s"]["origin"]
    assert settings["central_server_port"]["value"] == "4711"
    assert "SERENA_CENTRAL_SERVER_PORT" in settings["central_server_port"]["origin"]
    assert settings["central_server_host"]["origin"].startswith("default")
    shown = await run_command(tmp_path, "config", "show", "--origins", "--json", "--project", str(project), **more)
    settings = {row["key"]: row for row in shown.json["settings"]}
    assert settings["tool_timeout_s"]["value"] == "9.0"
    assert "project.yml" in settings["tool_timeout_s"]["origin"]
    assert settings["project_name"]["value"] == '"store"'
    assert settings["read_only"]["value"] == "true"
    for_people = await run_command(tmp_path, "config", "show", "--origins")
    assert for_people.out.splitlines()[0].split() == ["KEY", "VALUE", "ORIGIN"]
    wrong = await run_command(tmp_path, "config", "show", SERENA_CENTRAL_SERVER_PORT="many")
    assert wrong.code == 2
    assert "SERENA_CENTRAL_SERVER_PORT" in wrong.err
    assert (await run_command(tmp_path, "serve", SERENA_CENTRAL_SERVER_PORT="99999")).code == 2


HEALTH = {"status": "ok", "version": "1", "uptime_s": 1.0}


def announce(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes it the home of a server that answers at `url` as its test says."""
    (home / "server.json").write_text(json.dumps({"url": f"{url}/mcp", "pid": 1}))
    (home / "token").write_text("secret")
    (home / "token").chmod(0o600)
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(home))
    monkeypatch.setitem(Remote.__init__.__kwdefaults__, "answer_timeout_s", 1.0)


@pytest.mark.parametrize(
    ("said", "code", "says"),
    [
        (answer(500, "<html>oops</html>"), 1, "is not a serena-central server"),
        (answer(200, "hello from another program"), 1, "is not a serena-central server"),
        (answer(500, value={"error": {"kind": "internal", "message": "It broke."}}), 1, "It broke."),
        (answer(502, value=["no object"]), 1, "502"),
        (answer(401, value={"error": {"kind": "unauthorized", "message": "Wrong token."}}), 1, "Wrong token."),
        (answer(503), 1, "503"),
        (answer(500, value={"error": "a string"}), 1, "500"),
        (None, 3, "serena-central serve"),
        (b"nonsense\r\n\r\n", 3, "serena-central"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", 3, "does not answer"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_faults_of_the_server_end_a_command_in_words(
    said: bytes | None,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "argv", ["serena-central", "status"])
    with scripted_http("secret", lambda _: said) as server:
        announce(tmp_path, server.url, monkeypatch)
        with pytest.raises(SystemExit) as ended:
            main()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (code, "")
    assert says in shown.err
    assert "secret" not in shown.err


@pytest.mark.parametrize("said", [None, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"], ids=["ended", "silent"])
def test_a_call_that_is_not_answered_may_have_been_made(
    said: bytes | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["serena-central", "undo", "e-1"])
    with scripted_http("secret", lambda _: said) as server:
        announce(tmp_path, server.url, monkeypatch)
        with pytest.raises(SystemExit) as ended:
            main()
        assert [sent.method for sent in server.requests] == ["POST"]
    assert ended.value.code == 3
    assert "may have done what was asked: see `serena-central history`" in capsys.readouterr().err


def test_a_server_that_is_gone_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["serena-central", "status"])
    announce(tmp_path, "http://127.0.0.1:9", monkeypatch)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, "serena-central serve" in capsys.readouterr().err) == (3, True)


def test_every_request_carries_the_token_and_the_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["serena-central", "status", "--json"])
    folder = tmp_path / "jörg"
    folder.mkdir()
    monkeypatch.chdir(folder)
    store = {"queued": 0, "dropped": {}, "problem": None}
    budget = {"memory_budget_bytes": 8}
    answers = {
        "/health": HEALTH,
        "/api/v1/servers?limit=1000": {"servers": [], "next_cursor": None, "policy": {"max_calls": 7}, **budget},
        "/api/v1/stats": {"store": store, "settings_not_in_force": []},
    }
    with scripted_http("secret", lambda sent: answer(value=answers[sent.target])) as server:
        announce(tmp_path, server.url, monkeypatch)
        main()
    policy = {"max_calls": 7, **budget}
    shown = {"url": f"{server.url}/mcp", **HEALTH, "servers": [], "policy": policy, "store": store}
    shown["settings_not_in_force"] = []
    assert json.loads(capsys.readouterr().out) == shown
    assert len(server.requests) == 3
    for sent in server.requests:
        assert (sent.headers["authorization"], sent.headers["x-serena-project"]) == ("Bearer secret", str(folder))


async def test_edits_are_listed_and_taken_back(serving: Child, project: Path) -> None:
    before = (project / "cart.py").read_text()
    body = "def total(self) -> int:\n        return 1"
    await serving.call("replace_symbol_body", {"name_path": "Cart/total", "body": body, "project": str(project)})
    listed = await run_command(serving.folder, "history", "--project", str(project), "--json")
    edit = listed.json[0]
    undone = await run_command(serving.folder, "undo", edit["id"])
    again = await run_command(serving.folder, "undo", edit["id"])
    shown = await run_command(serving.folder, "history", "-n", "5")

    assert edit["tool"] == "replace_symbol_body"
    assert (undone.code, undone.err) == (0, "")
    assert (project / "cart.py").read_text() == before
    assert again.code == 1
    assert "it was already undone" in again.err
    assert f"undo of {edit['id']}" in shown.out


async def test_the_dashboard_is_entered_by_a_link_that_works_once(serving: Child) -> None:
    printed = await run_command(serving.folder, "dashboard", "--print")
    assert (printed.code, printed.err) == (0, "")
    link = printed.out.strip()
    async with httpx.AsyncClient() as browser, httpx.AsyncClient() as other:
        assert (await browser.get(link)).status_code == 200
        assert "Overview" in (await browser.get(link.partition("/enter")[0])).text
        assert (await other.get(link)).status_code == 401


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:24280/mcp", "http://127.0.0.1:24280/dashboard"),
        ("http://0.0.0.0:1/mcp", "http://127.0.0.1:1/dashboard"),
        ("http://[::]:1/mcp", "http://[::1]:1/dashboard"),
    ],
)
def test_a_page_is_found_on_this_machine_whatever_the_server_listens_on(url: str, address: str) -> None:
    assert page_address(url, "/dashboard") == address


NAMELESS = """
import os, pwd, sys

def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")

pwd.getpwuid = unknown
for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
    os.environ.pop(name, None)

from serena_central.cli.main import main

sys.argv[0] = "serena-central"
main()
"""
"""The program for a uid that has no account, as containers run it."""


async def test_a_user_without_an_account_is_named_by_the_uid(serving: Child, project: Path) -> None:
    async def run(*arguments: str) -> Ended:
        ended = await anyio.run_process(
            [sys.executable, "-c", NAMELESS, *arguments], check=False, cwd=project, env=environment(serving.folder)
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    async with serving.http() as http:
        session = (await http.post("/api/v1/sessions", json={"working_folder": str(project)})).json()["session_id"]
        resumed = await run("resume", session)
        assert (resumed.code, "not halted" in resumed.out) == (0, True), resumed.err
        undone = await run("undo", "e-nowhere")
        assert (undone.code, "Traceback" in undone.err) == (1, False), undone.err
        assert (await run("kill", session)).code == 0
        assert f"uid {os.getuid()}" in (await http.get(f"/api/v1/sessions/{session}")).json()["terminated_by"]
    trusted = await run("trust", "--yes")
    assert (trusted.code, trusted.err) == (0, "")
    assert f"uid {os.getuid()}" in (await run("trust", "--list")).out


@pytest.mark.parametrize("command", [("config", "init", "--project"), ("superrepo", "init")])
@pytest.mark.parametrize("linked", [".serena/project.yml", ".serena"])
async def test_a_repository_does_not_choose_where_its_settings_are_written(
    tmp_path: Path, command: tuple[str, ...], linked: str
) -> None:
    """Its link to a file that was not there yet, a shell's for instance, was followed."""
    (tmp_path / "dotfiles").mkdir()
    module = tmp_path / "src" / "shop" / "module"
    module.mkdir(parents=True)
    (module / "pyproject.toml").write_text("[project]\nname = 'module'\n")
    link = module.parent / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "dotfiles" / ("" if linked == ".serena" else "rc"))
    refused = await run_command(tmp_path, *command, str(module.parent))
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "Nothing was written." in refused.err
    assert list((tmp_path / "dotfiles").iterdir()) == []


@pytest.mark.parametrize("command", [("config", "init", "--project"), ("superrepo", "init")])
async def test_no_settings_are_written_for_what_can_not_be_a_project(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Settings above the home folder never count."""
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "go.mod").write_text("module shop\n")
    refused = await run_command(tmp_path, *command, str(tmp_path))
    assert refused.code == 1
    assert "is your home folder or above it, not a project" in refused.err
    assert not (tmp_path / ".serena").exists()


async def test_a_server_that_runs_where_it_can_not_be_reached_is_not_to_be_started_again(tmp_path: Path) -> None:
    """In another container that shares the home: `status` advised to start one, `serve` to stop it, and `stop` to start
    one; `restart` said that none was running, and then that one is."""
    async with serving_child(tmp_path) as child:
        said = json.loads(child.server_file.read_text())
        child.server_file.write_text(json.dumps(said | {"url": f"http://127.0.0.1:{free_port()}/mcp", "variables": []}))
        for command in ("status", "stop", "restart"):
            ended = await run_command(tmp_path, command)
            assert (ended.code, ended.err.count("\n")) == (3, 1), ended.err
            assert "runs, but nothing answers at" in ended.err
            assert "another container" in ended.err
