"""What `connect` writes is what leads to the server: by a real proxy, and by real requests."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import ByteStream, SocketAttribute
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ListRootsResult, Root

from serena_central.clients.table import CLIENTS
from tests.support.child import PATIENCE_S, Child, Ended, environment, run_command
from tests.support.mcp import RawClient, text_of
from tests.support.proxy import PROXY

pytestmark = pytest.mark.anyio


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def done(ended: Ended) -> Ended:
    assert (ended.code, ended.err) == (0, "")
    return ended


async def test_the_program_written_for_claude_code_lists_the_tools(serving: Child, project: Path) -> None:
    done(await run_command(serving.folder, "connect", "claude-code"))
    written = json.loads((serving.folder / "user" / ".claude.json").read_text())["mcpServers"]["serena"]
    assert Path(written["command"]).is_absolute()
    seen = {**environment(serving.folder), **written["env"], "CLAUDE_PROJECT_DIR": str(project)}
    del seen["HOME"]
    started = StdioServerParameters(command=written["command"], args=written["args"], env=seen, cwd="/")
    with anyio.fail_after(PATIENCE_S):
        async with stdio_client(started) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            assert "find_symbol" in [tool.name for tool in (await session.list_tools()).tools]
            found = await session.call_tool("find_symbol", {"name_path_pattern": "Cart"})
            assert "cart.py" in str(found.content)


async def test_a_client_that_starts_programs_in_no_folder_is_asked_for_its_own(serving: Child, project: Path) -> None:
    done(await run_command(serving.folder, "connect", "vscode"))
    file = serving.folder / "user" / ".config" / "Code" / "User" / "mcp.json"
    written = json.loads(file.read_text())["servers"]["serena"]
    started = StdioServerParameters(command=written["command"], args=written["args"], env=written["env"], cwd="/")

    async def folders(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=project.as_uri())])

    with anyio.fail_after(PATIENCE_S):
        async with (
            stdio_client(started) as (reader, writer),
            ClientSession(reader, writer, list_roots_callback=folders) as session,
        ):
            await session.initialize()
            found = ""
            while "cart.py" not in found:  # it is asked beside the first calls
                found = str((await session.call_tool("find_symbol", {"name_path_pattern": "Cart"})).content)


CLAUDE_RUNS_HELPER = [
    sys.executable,
    "-c",
    (
        "import os, pathlib, subprocess; own = pathlib.Path.home() / '.claude'; own.mkdir(exist_ok=True);"
        "subprocess.run(['/bin/sh', '-c', os.environ['HELPER'] + '; true'], cwd=own, check=True)"
    ),
]
"""A client in its user's folder, whose command runs in another one."""


@pytest.mark.skipif(sys.platform != "linux", reason="offered on Linux alone")
async def test_the_headers_that_a_command_prints_are_a_session_each(serving: Child, project: Path) -> None:
    done(await run_command(serving.folder, "connect", "claude-code", "--http"))
    file = serving.folder / "user" / ".claude.json"
    written = json.loads(file.read_text())["mcpServers"]["serena"]
    token = (serving.folder / "home" / "token").read_text().strip()
    assert token not in file.read_text()
    sessions: list[str] = []
    for _ in range(2):
        ran = await anyio.run_process(
            CLAUDE_RUNS_HELPER, cwd=project, env=environment(serving.folder) | {"HELPER": written["headersHelper"]}
        )
        sent = json.loads(ran.stdout)
        sessions.append(sent["x-serena-session"])
        async with httpx.AsyncClient(base_url=serving.url, headers=sent, timeout=PATIENCE_S) as http:
            client = RawClient(http, "modern", name="claude-code")
            seen = json.loads(text_of(await client.call("get_current_config")))
            assert seen["session"] == sent["x-serena-session"]
            assert "cart.py" in text_of(await client.call("find_symbol", name_path_pattern="Cart"))
    assert len(set(sessions)) == 2


@pytest.mark.parametrize("name", ["jürgen", "店"])
async def test_headers_name_any_folder_in_ascii(serving: Child, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    command = [sys.executable, "-I", "-m", "serena_central.proxy", "--print-headers"]
    ran = await anyio.run_process(command, cwd=folder, env=environment(serving.folder))
    assert all(value.isascii() for value in json.loads(ran.stdout).values())
    async with httpx.AsyncClient(base_url=serving.url, headers=json.loads(ran.stdout), timeout=PATIENCE_S) as http:
        seen = json.loads(text_of(await RawClient(http, "modern").call("get_current_config")))
    assert seen["working_folder"] == str(folder)


def http_entry(folder: Path, client: str) -> tuple[str, dict[str, str]]:
    """URL and headers of a user's file, filled in as the client does it."""
    file = {
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
        "opencode": ".config/opencode/opencode.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
    }[client]
    text = (folder / "user" / file).read_text()
    said: Any = tomllib.loads(text) if file.endswith("toml") else json.loads(text)
    for key in (*CLIENTS[client].servers, "serena"):
        said = said[key]
    headers = {**said.get("headers", {}), **said.get("http_headers", {})}
    headers |= {name: f"${variable}" for name, variable in said.get("env_http_headers", {}).items()}
    url = next(said[key] for key in ("url", "httpUrl", "serverUrl") if key in said)
    return url, headers


@pytest.mark.parametrize("client", ["codex", "gemini", "opencode", "windsurf"])
async def test_what_is_written_for_http_lets_a_request_in(serving: Child, project: Path, client: str) -> None:
    done(await run_command(serving.folder, "connect", client, "--http"))
    url, headers = http_entry(serving.folder, client)
    assert url == f"{serving.url}/mcp"
    folder = {"$PWD": str(project), "{env:PWD}": str(project)}
    sent = {name: folder.get(value, value) for name, value in headers.items()}
    async with httpx.AsyncClient(base_url=serving.url, headers=sent, timeout=PATIENCE_S) as http:
        agent = RawClient(http, "handshake", name=client)
        await agent.open()
        if "X-Serena-Project" in sent:
            assert "cart.py" in text_of(await agent.call("find_symbol", name_path_pattern="Cart"))
        else:
            assert not (await agent.call("list_projects"))["isError"]


async def test_all_clients_are_connected_listed_and_given_back(serving: Child, tmp_path: Path) -> None:
    home = serving.folder / "user"
    before = snapshot(home)
    shown = done(await run_command(serving.folder, "connect", *CLIENTS, "--dry-run"))
    assert "+++ " in shown.out
    assert (serving.folder / "home" / "token").read_text().strip() not in shown.out
    assert snapshot(home) == before
    done(await run_command(serving.folder, "connect", *CLIENTS))
    again = done(await run_command(serving.folder, "connect", *CLIENTS))
    assert again.out.count("already connected") == len(CLIENTS)
    rows = done(await run_command(serving.folder, "connect", "--list", "--json", cwd=tmp_path)).json
    users = {row["client"]: row["state"] for row in rows if row["scope"] == "user"}
    assert users == dict.fromkeys(CLIENTS, "current")
    assert {row["state"] for row in rows if row["scope"] == "project"} == {"not connected"}
    done(await run_command(serving.folder, "disconnect", *CLIENTS))
    assert not [file for file, data in snapshot(home).items() if b"serena" in data]


async def test_what_is_set_in_a_dialog_is_printed_and_nothing_is_written(tmp_path: Path) -> None:
    told = done(await run_command(tmp_path, "connect", "jetbrains", "goose")).out
    assert "Settings | Tools | AI Assistant" in told
    assert told.count("serena-proxy") >= 2
    printed = done(await run_command(tmp_path, "connect", "jetbrains", "--json")).json
    (entry,) = json.loads(printed[0]["paste"])["mcpServers"].values()
    assert Path(entry["command"]).name.startswith("serena-proxy")
    assert (printed[0]["file"], printed[0]["changed"]) == (None, False)
    assert not [data for data in snapshot(tmp_path / "user").values() if b"serena" in data]


@pytest.mark.parametrize("client", ["codex", "opencode", "claude-code"])
async def test_every_client_starts_the_server_unless_it_connects_over_http(tmp_path: Path, client: str) -> None:
    (by_proxy,) = done(await run_command(tmp_path, "connect", client, "--json")).json
    assert (by_proxy["server_runs"], by_proxy["started_by"]) == (False, "serena-proxy")
    rows = done(await run_command(tmp_path, "connect", "--list", client, "--json")).json
    assert rows[0]["transport"] == "stdio"
    told = done(await run_command(tmp_path, "connect", client, "--http")).out
    assert "No server is running. Over HTTP no client starts one" in told
    assert "service install" in told


async def test_connect_says_that_a_server_runs(serving: Child) -> None:
    told = done(await run_command(serving.folder, "connect", "gemini")).out
    assert "The server is running. serena-proxy starts one whenever a client needs it." in told


async def test_a_project_s_files_can_be_shared(tmp_path: Path, project: Path) -> None:
    named = [name for name, client in CLIENTS.items() if client.project_files]
    by_reference = [name for name in named if CLIENTS[name].http and CLIENTS[name].http_by_reference]
    for arguments in ((*named,), (*by_reference, "--http")):
        done(await run_command(tmp_path, "connect", *arguments, "--scope", "project", cwd=project / ".git"))
        written = {name: data for name, data in snapshot(project).items() if not name.endswith(".py")}
        assert len(written) == len(named)
        assert not any(str(tmp_path).encode() in data or b"Bearer ey" in data for data in written.values())
    assert not (tmp_path / "home" / "token").exists()
    rows = (await run_command(tmp_path, "connect", "--list", "--json", cwd=project)).json
    shared = {row["client"]: row["transport"] for row in rows if row["scope"] == "project"}
    assert shared == {name: "http" if name in by_reference else "stdio" for name in named}
    done(await run_command(tmp_path, "disconnect", *named, "--scope", "project", "--project", str(project)))
    assert not [data for data in snapshot(project).values() if b"serena" in data]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["connect"], 2, "Name at least one client: claude-code, codex"),
        (["connect", "emacs"], 2, "'emacs' is not a client. Clients: claude-code, codex"),
        (["connect", "claude"], 2, "Did you mean claude-code or claude-desktop?"),
        (["connect", "Codex"], 2, "Did you mean codex?"),
        (["connect", "claude-desktop", "--http"], 2, "only supports stdio servers"),
        (["connect", "junie", "--http"], 2, "only supports stdio servers"),
        (["connect", "jetbrains", "--http"], 2, "is connected through serena-proxy alone"),
        (["disconnect", "goose"], 2, "is not a client"),
        (["connect", "windsurf", "--scope", "project"], 2, "no project configuration"),
        (["connect", "zed", "--scope", "project", "--http"], 2, "must not contain it"),
        (["connect", "cursor", "--scope", "project", "--project", "{home}"], 2, "not a project"),
        (["connect", "codex", "--http"], 2, "choose a fixed port for --http"),
        (["connect", "gemini", "claude-code"], 1, ".gemini/settings.json:2: a value was expected"),
        (["disconnect", "cursor"], 1, "was not written by serena-central"),
        (["disconnect"], 2, "Missing argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_what_can_not_be_done_is_said_and_nothing_is_changed(
    tmp_path: Path, project: Path, arguments: list[str], code: int, says: str
) -> None:
    home = tmp_path / "user"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text('{\n  "a": oops\n}\n')
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"serena": {"command": "uvx"}}}')
    before = snapshot(tmp_path)
    asked = [argument.replace("{home}", str(home)) for argument in arguments]
    ended = await run_command(tmp_path, *asked, cwd=project, SERENA_CENTRAL_SERVER_PORT="0")
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert snapshot(tmp_path) == before


async def test_another_program_of_our_name_is_replaced_and_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "user" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    theirs = '{"mcpServers": {"serena": {"command": "uvx", "args": ["serena"]}}}'
    file.write_text(theirs)
    told = done(await run_command(tmp_path, "connect", "cursor")).out
    assert "replaced an entry that started uvx" in told
    assert "Backup: " in told
    assert str(tmp_path / "home" / "backups") in told
    done(await run_command(tmp_path, "disconnect", "cursor"))
    assert file.read_text() == theirs


async def test_headers_are_refused_in_words_without_a_token_or_with_an_open_one(tmp_path: Path) -> None:
    async def refusal(code: int) -> str:
        ran = await anyio.run_process([*PROXY, "--print-headers"], env=environment(tmp_path), check=False)
        assert (ran.returncode, ran.stdout) == (code, b"")
        return ran.stderr.decode()

    assert "there is no token yet" in await refusal(3)
    token = tmp_path / "home" / "token"
    token.parent.mkdir()
    token.write_text("s3cret" * 8)
    token.chmod(0o644)
    said = await refusal(1)
    assert "readable by other users" in said
    assert "of a team's from its administrator" in said  # nobody gets a user's token back by deleting its file
    assert "s3cret" not in said


async def test_headers_are_given_for_a_server_alone_that_proves_itself(serving: Child) -> None:
    async def headers(**more: str) -> tuple[int, str]:
        variables = environment(serving.folder, **more)
        ran = await anyio.run_process([*PROXY, "--print-headers"], env=variables, check=False)
        assert (b"Bearer" in ran.stdout) is (ran.returncode == 0)
        return ran.returncode, ran.stderr.decode()

    squatter = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = squatter.extra(SocketAttribute.local_port)
    async with squatter, anyio.create_task_group() as tasks:

        async def answer(stream: ByteStream) -> None:
            async with stream:
                await stream.receive()
                await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

        tasks.start_soon(squatter.serve, answer)
        assert await headers() == (0, "")
        code, said = await headers(CLAUDE_CODE_MCP_SERVER_URL=f"http://127.0.0.1:{port}/mcp")
        assert code == 1
        assert "could not prove that it is this user's server" in said
        tasks.cancel_scope.cancel()
    assert (await headers(CLAUDE_CODE_MCP_SERVER_URL=f"http://127.0.0.1:{port}/mcp"))[0] == 3
    code, said = await headers(CLAUDE_CODE_MCP_SERVER_URL="http://192.0.2.1/mcp")
    assert (code, "only if --token-file names it" in said) == (1, True)


async def test_a_proxy_that_is_started_at_home_names_no_folder(serving: Child) -> None:
    home = serving.folder / "user"
    home.mkdir(exist_ok=True)
    for cwd, more, folder in (
        (home, {}, None),
        (Path("/"), {}, None),
        (home, {"WORKSPACE_FOLDER_PATHS": "/srv/shop,/srv/other"}, "/srv/shop"),
        (serving.folder, {}, str(serving.folder)),
    ):
        ran = await anyio.run_process([*PROXY, "--print-headers"], cwd=cwd, env=environment(serving.folder, **more))
        assert json.loads(ran.stdout).get("x-serena-project") == folder
