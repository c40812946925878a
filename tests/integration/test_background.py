"""A server in the background: started, followed, restarted, and run by the system."""

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import httpx
import psutil
import pytest
from anyio.streams.text import TextReceiveStream

from tests.support.child import PATIENCE_S, PROGRAM, environment, run_command, serving_child, until_gone
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio


def announced(folder: Path) -> dict[str, object]:
    return json.loads((folder / "home" / "server.json").read_text())


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncGenerator[Path]:
    """A folder with the home of servers that end with the test."""
    yield tmp_path
    try:
        server = psutil.Process(int(str(announced(tmp_path)["pid"])))
    except (FileNotFoundError, psutil.NoSuchProcess):
        return
    server.terminate()
    await until_gone([server.pid])


def http(folder: Path) -> httpx.AsyncClient:
    token = (folder / "home" / "token").read_text().strip()
    url = str(announced(folder)["url"]).removesuffix("/mcp")
    return httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE_S)


async def test_a_server_in_the_background_answers_when_the_command_returns(folder: Path) -> None:
    started = await run_command(folder, "serve", "--daemon", "--port", "0")
    assert (started.code, started.err) == (0, "")
    said = announced(folder)
    assert f"serves MCP at {said['url']} (pid {said['pid']})" in started.out
    assert str(folder / "home" / "logs" / "server.log") in started.out
    async with http(folder) as client:
        assert (await client.get("/health")).status_code == 200
    again = await run_command(folder, "serve", "--daemon", "--port", "0")
    assert again.code == 1
    assert str(said["url"]) in again.err
    stopped = await run_command(folder, "stop")
    assert stopped.out == f"Stopped (pid {said['pid']}).\n"


async def test_a_command_works_in_a_folder_that_was_removed(folder: Path) -> None:
    """The server answered, and was stopped after a minute, since the command that had started it could not ask it."""
    (folder / "gone").mkdir()
    script = 'rmdir ../gone && "$0" serve --daemon --port 0 && "$0" status'
    ended = await anyio.run_process(
        ["sh", "-c", script, str(PROGRAM)], check=False, cwd=folder / "gone", env=environment(folder)
    )
    assert (ended.returncode, ended.stderr.decode()) == (0, "")
    assert str(announced(folder)["url"]) in ended.stdout.decode()


async def test_a_server_that_can_not_start_says_why(folder: Path) -> None:
    ended = await run_command(
        folder, "serve", "--daemon", "--host", "0.0.0.0", "--port", "0", SERENA_CENTRAL_ALLOWED_ROOTS=""
    )
    assert ended.code == 2
    assert "allowed_roots" in ended.err
    assert "start.log" in ended.err


async def test_a_server_a_part_of_which_can_not_start_says_why(folder: Path) -> None:
    (folder / "home/edits.journal").mkdir(parents=True)
    for background in ([], ["--daemon"]):
        ended = await run_command(folder, "serve", "--port", "0", *background)
        assert ended.code == 1
        said = ended.err.splitlines()[-1]
        assert "edits.journal can't be used: Is a directory" in said
        assert not (folder / "home/server.json").exists()


async def test_a_server_does_not_start_with_a_database_of_a_newer_version(folder: Path) -> None:
    """It started, and what it recorded was lost when it stopped."""
    url = f"sqlite:///{folder / 'other.db'}"
    for file, settings in (("home/serena-central.db", {}), ("other.db", {"SERENA_CENTRAL_DATABASE_URL": url})):
        (folder / file).parent.mkdir(mode=0o700, exist_ok=True)
        with closing(sqlite3.connect(folder / file)) as database:
            database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
            database.execute("INSERT INTO alembic_version VALUES ('9999')")
            database.commit()
        for background in ([], ["--daemon"]):
            ended = await run_command(folder, "serve", "--port", "0", *background, **settings)
            assert (ended.code, ended.out) == (1, "")
            assert "The database has schema 9999" in ended.err
            assert "Upgrade serena-central" in ended.err
    assert not (folder / "home/server.json").exists()


async def test_a_server_waits_for_one_that_starts_or_stops_and_not_for_one_that_runs(folder: Path) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    with (home / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        (home / "server.json").write_text('{"url": "http://127.0.0.1:1/mcp", "pid": 1}')
        refused = await run_command(folder, "serve", "--port", "0")
        assert (refused.code, "already running: http://127.0.0.1:1/mcp (pid 1)" in refused.err) == (1, True)

        (home / "server.json").unlink()
        command = [str(PROGRAM), "serve", "--port", "0"]
        async with await anyio.open_process(command, env=environment(folder), stdout=subprocess.DEVNULL) as serving:
            with anyio.fail_after(PATIENCE_S):
                while str(home / "lock") not in [one.path for one in psutil.Process(serving.pid).open_files()]:
                    await anyio.sleep(0.02)
                other.close()
                while not (home / "server.json").exists():
                    assert serving.returncode is None
                    await anyio.sleep(0.02)
            assert announced(folder)["pid"] == serving.pid
            serving.terminate()


async def test_a_restart_keeps_address_and_sessions(folder: Path) -> None:
    await run_command(folder, "serve", "--daemon", "--port", "0")
    before = announced(folder)
    async with http(folder) as client:
        agent = RawClient(client, "handshake", name="agent")
        await agent.open()
        await agent.call("list_projects")
        restarted = await run_command(folder, "restart")
        assert (restarted.code, restarted.err) == (0, "")
        after = announced(folder)
        assert after["url"] == before["url"]
        assert after["pid"] != before["pid"]
        assert not (await agent.call("list_projects"))["isError"]
        listed = (await run_command(folder, "sessions", "--json")).json
        assert [one["session_id"] for one in listed] == [agent.session_id]
    await run_command(folder, "stop")
    from_nothing = await run_command(folder, "restart", SERENA_CENTRAL_SERVER_PORT="0")
    assert from_nothing.code == 0
    assert "No server was running." in from_nothing.out


async def test_a_restart_is_refused_where_it_would_lose_what_variables_have_set(folder: Path) -> None:
    url = f"sqlite:///{folder / 'other.db'}"
    await run_command(folder, "serve", "--daemon", "--port", "0", SERENA_CENTRAL_DATABASE_URL=url)
    before = announced(folder)
    assert url not in json.dumps(before)
    refused = await run_command(folder, "restart")
    assert (refused.code, refused.out) == (2, "")
    assert "SERENA_CENTRAL_DATABASE_URL" in refused.err
    assert announced(folder) == before
    assert (await run_command(folder, "restart", SERENA_CENTRAL_DATABASE_URL=url)).code == 0
    (folder / "user" / ".serena").mkdir(parents=True)
    (folder / "user" / ".serena" / "serena_config.yml").write_text(f"database_url: {url}\n")
    assert (await run_command(folder, "restart")).code == 0
    await run_command(folder, "stop")


async def test_a_service_that_lacks_what_variables_set_here_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    with systemd(tmp_path) as (_, seen):
        shown = await run_command(tmp_path, "service", "install", "--dry-run", SERENA_CENTRAL_DATABASE_URL=url, **seen)
    assert "SERENA_CENTRAL_DATABASE_URL" in shown.err
    assert url not in shown.out + shown.err


LINES = """\
2026-01-31T12:00:00.000Z INFO serena_central.app: one [session=s-1]
2026-01-31T12:00:01.000Z WARNING serena_central.app: two [session=s-2]
2026-01-31T12:00:02.000Z ERROR serena_central.app: three
Traceback of three
"""


async def test_the_log_is_shown_filtered_and_followed(tmp_path: Path) -> None:
    none = await run_command(tmp_path, "logs")
    assert (none.code, none.out) == (1, "")
    assert "no log yet" in none.err
    log = tmp_path / "home" / "logs" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text(LINES)
    assert (await run_command(tmp_path, "logs")).out == LINES
    assert (await run_command(tmp_path, "logs", "-n", "1")).out == "".join(LINES.splitlines(keepends=True)[2:])
    assert (await run_command(tmp_path, "logs", "--level", "warning", "--session", "s-2")).out.count("\n") == 1
    told = json.loads((await run_command(tmp_path, "logs", "--session", "s-1", "--json")).out)
    assert (told["level"], told["message"], told["session"]) == ("info", "one", "s-1")
    command = [str(PROGRAM), "logs", "-f", "-n", "1", "--level", "error"]
    async with await anyio.open_process(command, env=environment(tmp_path, PYTHONUNBUFFERED="1")) as following:
        assert following.stdout
        text, shown = TextReceiveStream(following.stdout), ""
        with anyio.fail_after(PATIENCE_S):
            while "Traceback of three" not in shown:
                shown += await text.receive()
            with log.open("a") as stream:
                stream.write("2026-01-31T12:00:03.000Z INFO x: four\n2026-01-31T12:00:04.000Z ERROR x: five\x1b[2J\n")
            while "five" not in shown:
                shown += await text.receive()
        following.terminate()
    assert "four" not in shown
    assert "\x1b" not in shown


SYSTEMCTL = """\
#!/bin/sh
echo "$@" >>"$STATE/asked"
case "$*" in
    *show-environment*) [ ! -e "$STATE/absent" ] ;;
    *is-active*) [ -e "$STATE/active" ] ;;
    *"enable --now"*) touch "$STATE/active" ;;
    *"disable --now"*) rm -f "$STATE/active" ;;
esac
"""


@contextmanager
def systemd(folder: Path) -> Generator[tuple[Path, dict[str, str]]]:
    """A `systemctl` that writes down what it is asked; its folder, and the environment that has it first."""
    state = folder / "systemd"
    state.mkdir()
    (state / "systemctl").write_text(SYSTEMCTL)
    (state / "systemctl").chmod(0o755)
    yield state, {"PATH": f"{state}:{os.environ['PATH']}", "STATE": str(state)}


async def test_a_service_takes_over_from_the_server_that_runs(folder: Path) -> None:
    unit = folder / "user" / ".config" / "systemd" / "user" / "serena-central.service"
    with systemd(folder) as (state, seen):
        await run_command(folder, "serve", "--daemon", "--port", "0")
        shown = await run_command(folder, "service", "install", "--dry-run", **seen)
        assert (shown.code, unit.exists()) == (0, False)
        assert f'ExecStart="{PROGRAM}" serve' in shown.out
        installed = await run_command(folder, "service", "install", **seen)
        assert installed.code == 0
        assert str(PROGRAM) in unit.read_text()
        assert str(folder / "home") in unit.read_text()
        assert not (folder / "home" / "server.json").exists()
        asked = (state / "asked").read_text().splitlines()
        assert asked[-2:] == ["--user daemon-reload", "--user enable --now serena-central.service"]
        told = (await run_command(folder, "service", "status", "--json", **seen)).json
        assert told == {"file": str(unit), "installed": True, "current": True, "running": True, "url": None}
        restarted = await run_command(folder, "restart", **seen)
        assert "Restarted by the system" in restarted.out
        assert (state / "asked").read_text().splitlines()[-1] == "--user restart serena-central.service"
        removed = await run_command(folder, "service", "uninstall", **seen)
        assert (removed.code, unit.exists(), (state / "active").exists()) == (0, False, False)
        assert "Not installed" in (await run_command(folder, "service", "status", **seen)).out


async def test_where_systemd_does_not_answer_the_commands_are_told(tmp_path: Path) -> None:
    with systemd(tmp_path) as (state, seen):
        (state / "absent").touch()
        told = await run_command(tmp_path, "service", "install", **seen)
        assert told.code == 0
        assert "Not started: systemd is not running for this user." in told.out
        assert "systemctl --user enable --now serena-central.service" in told.out
        assert "serena-central serve --daemon" in told.out
        assert "enable" not in (state / "asked").read_text()
        removed = await run_command(tmp_path, "service", "uninstall", **seen)
        assert removed.out.startswith("Removed ")
        assert "No service" in (await run_command(tmp_path, "service", "uninstall", **seen)).out


async def test_what_a_person_wrote_into_the_service_is_kept_beside(tmp_path: Path) -> None:
    unit = tmp_path / "user" / ".config" / "systemd" / "user" / "serena-central.service"
    with systemd(tmp_path) as (state, seen):
        (state / "absent").touch()
        assert (await run_command(tmp_path, "service", "install", "--json", **seen)).json["backup"] is None
        ours = unit.read_text()
        for number, command in enumerate(("install", "uninstall")):
            unit.write_text(edited := ours.replace("[Service]", f"[Service]\nNice={number}"))
            done = (await run_command(tmp_path, "service", command, "--json", **seen)).json
            assert Path(done["backup"]).read_text() == edited
        assert not unit.exists()


SLOW_START = """
import pathlib, sys
import serena_central.app as app

server_file = pathlib.Path(sys.argv.pop(1))
build, startup = app.build, app.CentralServer.startup

def slow_build(*arguments, **more):
    print("building", server_file.exists(), file=sys.stderr)
    return build(*arguments, **more)

async def slow_startup(self, sockets=None):
    print("starting", server_file.exists(), file=sys.stderr)
    await startup(self, sockets)
    print("answering", server_file.exists(), file=sys.stderr)

app.build, app.CentralServer.startup = slow_build, slow_startup
from serena_central.cli.main import main
main()
"""


async def test_a_server_is_announced_when_it_answers_and_an_older_announcement_is_gone_before(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home/server.json").write_text('{"url": "http://127.0.0.1:9/mcp", "pid": 1}')  # of one that was killed
    (tmp_path / "home/server.json").chmod(0o600)
    program = (sys.executable, "-c", SLOW_START, str(tmp_path / "home/server.json"))
    async with serving_child(tmp_path, program=program) as child:
        said = (tmp_path / "serve.log").read_text().split("\n")[:3]
        assert said == ["building False", "starting False", "answering False"]
        async with http(tmp_path) as client:
            assert (await client.get("/health")).status_code == 200
        assert announced(tmp_path)["pid"] == child.process.pid
