"""The data folder is its user's alone, whoever makes it and however it was; what people get is as their umask says."""

import json
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import DEVNULL

import anyio
import pytest

from tests.support.child import PATIENCE_S, PROGRAM, environment, run_command, serving_child
from tests.support.mcp import text_of
from tests.support.proxy import proxying

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")]

EntryPoint = Callable[[Path], Awaitable[None]]


@pytest.fixture(autouse=True)
def _no_umask() -> None:
    os.umask(0)  # restored after each test


def open_to_others(home: Path) -> list[str]:
    """Everything that anybody but its user may do anything with, by its mode."""
    found = [home, *home.rglob("*")]
    modes = {path: path.lstat().st_mode for path in found if not path.is_symlink()}
    return sorted(f"{path} {stat.S_IMODE(mode):04o}" for path, mode in modes.items() if mode & 0o077)


def make_loose(home: Path) -> None:
    """A home of an earlier version, opened by somebody's `chmod -R`."""
    for folder in ("logs", "cache", "servers/tiny/1.0/bin", "backups", "tmp"):
        (home / folder).mkdir(parents=True)
    program = home / "servers/tiny/1.0/bin/tiny"
    for file in ("edits.journal", "children.json", "logs/server.log", "logs/server.log.1", "cache/x.index.db", "lock"):
        (home / file).write_bytes(b"")
    program.write_text("#!/bin/sh\n")
    for path in (home, *home.rglob("*")):
        path.chmod(0o777 if path.is_dir() or path == program else 0o666)
    (home / "token").write_text("secret" * 8)
    (home / "token").chmod(0o600)


async def serve(folder: Path) -> None:
    project = folder / "shop"
    project.mkdir(exist_ok=True)
    (project / "cart.py").write_text("def total() -> int:\n    return 1\n")
    async with serving_child(folder, "--project", str(project)) as child:
        arguments = {"relative_path": "new/made.py", "content": "x = 1\n", "project": str(project)}
        await child.call("create_text_file", arguments)
        await child.call("find_symbol", {"name_path_pattern": "total", "project": str(project)})
        assert not open_to_others(folder / "home")


async def daemon(folder: Path) -> None:
    assert (await run_command(folder, "serve", "--daemon", "--port", "0")).code == 0
    assert (await run_command(folder, "stop")).code == 0


async def proxy(folder: Path) -> None:
    async with proxying(folder, "modern", SERENA_CENTRAL_PORT="0") as client:
        await client.session()
    assert (await run_command(folder, "stop")).code == 0


async def lonely_proxy(folder: Path) -> None:
    async with proxying(folder, "modern", "--no-start") as client:
        await client.end_input()
        assert await client.ended() == 0


async def standalone(folder: Path) -> None:
    flags = ["--standalone", "--project", str(folder)]
    command = [sys.executable, "-m", "serena_central.proxy.mcp_server"]
    async with proxying(folder, "handshake", *flags, command=command) as client:
        await client.open()
        await client.end_input()
        assert await client.ended() == 0


async def hook(folder: Path) -> None:
    said = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "grep -rn 'def a' src"}}
    said |= {"session_id": "s", "cwd": str(folder)}
    program = [sys.executable, "-I", "-m", "serena_central.hook", "enforce"]
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            program, input=json.dumps(said).encode(), env=environment(folder), cwd=folder, check=False
        )
    assert ended.returncode == 0


async def connect(folder: Path) -> None:
    (folder / "user" / ".cursor").mkdir(parents=True, exist_ok=True)
    (folder / "user" / ".cursor" / "mcp.json").write_text("{}")
    assert (await run_command(folder, "connect", "cursor")).code == 0


async def other_commands(folder: Path) -> None:
    for command in (["status"], ["config", "show"], ["languages", "list"], ["logs"]):
        await run_command(folder, *command)


ENTRY_POINTS = [serve, daemon, proxy, lonely_proxy, standalone, hook, connect, other_commands]


BY_OTHERS = (daemon, proxy)
"""What is begun by the same code as another entry point: what a home was is quick for the other one."""


@pytest.mark.parametrize(
    ("was", "entry_point"),
    [
        pytest.param(was, one, id=f"{was}-{one.__name__}", marks=pytest.mark.slow if one in again else ())
        for was, again in (("missing", ()), ("loose", BY_OTHERS))
        for one in ENTRY_POINTS
    ],
)
async def test_nothing_in_the_home_is_open_to_others(tmp_path: Path, was: str, entry_point: EntryPoint) -> None:
    if was == "loose":
        make_loose(tmp_path / "home")
        assert open_to_others(tmp_path / "home")
    await entry_point(tmp_path)
    if (tmp_path / "home").exists():
        assert not open_to_others(tmp_path / "home")
    program = tmp_path / "home/servers/tiny/1.0/bin/tiny"
    assert not program.exists() or program.stat().st_mode & 0o777 == 0o700


async def test_what_was_mended_is_said_once(tmp_path: Path) -> None:
    make_loose(tmp_path / "home")
    first, second = [await run_command(tmp_path, "config", "show") for _ in range(2)]
    assert "was accessible to other users (mode 0777)" in first.err
    assert not second.err


async def test_the_server_logs_what_it_mended(tmp_path: Path) -> None:
    make_loose(tmp_path / "home")
    async with serving_child(tmp_path):
        assert "was accessible to other users (mode 0777)" in (tmp_path / "home/logs/server.log").read_text()
        (tmp_path / "home/logs/server.log").write_text("")
    async with serving_child(tmp_path):
        assert "accessible to other users" not in (tmp_path / "home/logs/server.log").read_text()


async def test_a_token_that_others_could_read_is_refused_and_not_made_good(tmp_path: Path) -> None:
    make_loose(tmp_path / "home")
    (tmp_path / "home/token").chmod(0o666)
    ended = await run_command(tmp_path, "serve", "--port", "0")
    assert ended.code != 0
    assert "Delete it to get a new one" in ended.err
    assert open_to_others(tmp_path / "home") == [f"{tmp_path / 'home/token'} 0666"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("what", ["home", "link", "file"])
async def test_a_home_that_is_somebody_elses_is_refused(tmp_path: Path, what: str) -> None:
    home = tmp_path / "home"
    if what == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        home.symlink_to("real")
        os.lchown(home, 4242, 4242)
    else:
        home.mkdir(mode=0o700)
        (home / "edits.journal").write_text("")
        os.chown(home if what == "home" else home / "edits.journal", 4242, 4242)
    ended = await run_command(tmp_path, "serve", "--port", "0")
    assert ended.code == 2
    assert "belongs to another user" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere paths are Unicode")
async def test_a_home_whose_path_is_no_unicode_is_refused(tmp_path: Path) -> None:
    """The journal, the database and the announcement hold paths as UTF-8."""
    for command in (["serve", "--port", "0"], ["serve", "--daemon"], ["doctor"], ["status"]):
        home = os.fsdecode(os.fsencode(tmp_path) + b"/home-\xe4")
        ended = await run_command(tmp_path, *command, SERENA_CENTRAL_HOME=home)
        assert ended.code == 2
        assert "home-\\xe4 is not valid UTF-8; choose a folder" in ended.err.splitlines()[-1]
        assert "Traceback" not in ended.err


async def test_the_doctor_tells_and_mends_nothing(tmp_path: Path) -> None:
    make_loose(tmp_path / "home")
    ended = await run_command(tmp_path, "doctor")
    assert "other users can read" in ended.out
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize("start", ["serve", "daemon", "proxy"])
async def test_what_agents_make_in_a_project_is_as_the_users_umask_says(tmp_path: Path, start: str) -> None:
    """Whatever started the server, and although it makes its own files with another one."""
    os.umask(0o002)
    (tmp_path / "home").mkdir(mode=0o700)
    project = tmp_path / "shop"
    project.mkdir()
    (project / "cart.py").write_text("x = 1\n")
    (project / "cart.py").chmod(0o640)
    settings = {
        "SERENA_CENTRAL_EXECUTE_SHELL": "true",
        "SERENA_CENTRAL_INCLUDED_OPTIONAL_TOOLS": "execute_shell_command",
    }
    if start == "daemon":
        assert (await run_command(tmp_path, "serve", "--daemon", "--port", "0", **settings)).code == 0
    command = [str(PROGRAM), "serve", "--port", "0"]
    server = None
    if start == "serve":
        server = await anyio.open_process(
            command, env=environment(tmp_path, **settings), cwd=tmp_path, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
    try:
        async with proxying(tmp_path, "modern", "--project", str(project), **settings) as client:
            await client.call("activate_project", project=str(project))
            await client.call("create_text_file", relative_path="new/made.py", content="y = 1\n")
            await client.call("create_text_file", relative_path="cart.py", content="x = 2\n")
            await client.call("write_memory", memory_name="notes/one", content="text")
            said = text_of(await client.call("execute_shell_command", command="umask"))
    finally:
        await run_command(tmp_path, "stop")
        if server is not None:
            with anyio.fail_after(PATIENCE_S):
                await server.wait()
    modes = {name: (project / name).stat().st_mode & 0o777 for name in ("new", "new/made.py", "cart.py")}
    assert modes == {"new": 0o775, "new/made.py": 0o664, "cart.py": 0o640}
    assert (project / ".serena/memories/notes/one.md").stat().st_mode & 0o777 == 0o664
    assert json.loads(said)["stdout"].strip() == "0002"
    assert not open_to_others(tmp_path / "home")
