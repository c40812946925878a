"""What a client never notices, because its proxy deals with it: servers that die, restart, forget, or don't run yet."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import psutil
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.child import PATIENCE_S, alive, environment, run_command, serving_child, until_gone
from tests.support.mcp import Era, text_of
from tests.support.proxy import ProxyClient, proxying

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["handshake", "modern"]


def server_pid(folder: Path) -> int:
    return json.loads((folder / "home" / "server.json").read_text())["pid"]


@asynccontextmanager
async def stopping_what_was_started(folder: Path) -> AsyncGenerator[None]:
    """Ends the server that a proxy started below `folder`."""
    try:
        yield
    finally:
        with anyio.move_on_after(PATIENCE_S, shield=True):
            await run_command(folder, "stop")


@asynccontextmanager
async def at_work(folder: Path, project: Path, era: Era) -> AsyncGenerator[ProxyClient]:
    """A client that has started a server and works on a project."""
    async with stopping_what_was_started(folder), proxying(folder, era) as client:
        await client.open()
        await client.ask("tools/list")
        await client.call("activate_project", project=str(project))
        yield client


@asynccontextmanager
async def api(folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    url = json.loads((folder / "home" / "server.json").read_text())["url"]
    token = (folder / "home" / "token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url.removesuffix("/mcp"), headers=headers, timeout=PATIENCE_S) as client:
        yield client


async def state_of(folder: Path, session: str) -> str:
    async with api(folder) as http:
        return (await http.get(f"/api/v1/sessions/{session}")).json()["state"]


async def until_state(folder: Path, session: str, state: str, within_s: float) -> None:
    with anyio.fail_after(within_s):
        while await state_of(folder, session) != state:
            await anyio.sleep(0.05)


async def test_ten_proxies_at_once_start_one_server_that_outlives_them(tmp_path: Path) -> None:
    sessions: set[str] = set()

    async def one() -> None:
        async with proxying(tmp_path, "modern") as client:
            sessions.add(await client.session())

    async with stopping_what_was_started(tmp_path):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(one)
        assert len(sessions) == 10
        running = [
            process.pid
            for process in psutil.process_iter(["environ"])
            if (process.info["environ"] or {}).get("SERENA_CENTRAL_HOME") == str(tmp_path / "home")
            and "serve" in process.cmdline()
        ]
        assert running == [server_pid(tmp_path)]
        assert os.getsid(running[0]) == running[0]
        assert psutil.Process(running[0]).cwd() == str(tmp_path / "home")


async def test_a_server_that_a_proxy_started_is_none_of_its_descendants(tmp_path: Path) -> None:
    """opencode ends all of those when it ends."""
    async with stopping_what_was_started(tmp_path), proxying(tmp_path, "modern") as client:
        await client.session()
        below = psutil.Process(client.process.pid).children(recursive=True)
        assert server_pid(tmp_path) not in [process.pid for process in below]
        assert os.getsid(server_pid(tmp_path)) == server_pid(tmp_path)


async def test_without_a_server_and_without_starting_one_requests_are_told_why(tmp_path: Path) -> None:
    async with proxying(tmp_path, "modern", "--no-start") as client:
        await client.begin("tools/list", as_id="waiting")
        await client.end_input()
        assert "shutting down" in (await client.answer("waiting"))["error"]["message"]
        assert await client.ended() == 0


async def test_a_start_that_fails_names_the_log(tmp_path: Path) -> None:
    async with proxying(tmp_path, "modern", SERENA_CENTRAL_SERVER_ENABLED="false") as client:
        message = (await client.ask("tools/list"))["error"]["message"]
        assert "central_server_enabled" in message
        assert str(tmp_path / "home" / "logs" / "start.log") in message


async def test_an_older_server_that_runs_is_reported_and_used(tmp_path: Path) -> None:
    async with serving_child(tmp_path) as child:
        said = json.loads(child.server_file.read_text())
        child.server_file.write_text(json.dumps(said | {"version": "0.0.9"}))
        async with proxying(tmp_path, "modern") as client:
            assert "result" in await client.ask("tools/list")
            assert "the running server has version 0.0.9" in client.said()
            assert "serena-central stop" in client.said()
        child.server_file.write_text(json.dumps(said | {"version": "99.0"}))
        async with proxying(tmp_path, "modern") as client:
            assert "result" in await client.ask("tools/list")
            assert client.said() == ""


async def test_a_token_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    async with serving_child(tmp_path):
        (tmp_path / "home" / "token").chmod(0o644)
        async with proxying(tmp_path, "modern") as client:
            message = (await client.ask("tools/list"))["error"]["message"]
            assert "chmod 600" in message
            (tmp_path / "home" / "token").chmod(0o600)
            assert "result" in await client.ask("tools/list")


@pytest.mark.parametrize("era", ERAS)
async def test_edits_under_way_when_the_server_is_killed_are_made_once_at_most(
    tmp_path: Path, project: Path, era: Era
) -> None:
    """Each adds a method of its own; whoever is told that it was made finds it once, all others once or never."""
    async with at_work(tmp_path, project, era) as client:
        before = server_pid(tmp_path)
        names = [f"extra_{number}" for number in range(16)]
        for name in names:
            body = f"def {name}(self) -> int:\n    return 1\n"
            arguments = {"name_path": "Cart/total", "relative_path": "cart.py", "body": body}
            await client.begin("tools/call", {"name": "insert_after_symbol", "arguments": arguments}, as_id=name)
        with anyio.fail_after(PATIENCE_S):
            while len(client.answers.keys() & set(names)) < 3:
                await client.read()
        os.kill(before, signal.SIGKILL)
        answers = {name: (await client.answer(name)).get("result") for name in names}
        text = (project / "cart.py").read_text()
        made = {name: text.count(f"def {name}(") for name in names}
        assert max(made.values()) == 1, made
        assert all(made[name] == 1 for name, result in answers.items() if result and not result["isError"]), made
        assert sum(made.values()) >= 3
        assert [path.name for path in project.iterdir() if path.name.startswith(".cart")] == []


@pytest.mark.parametrize("era", ERAS)
async def test_killing_the_server_under_a_hundred_calls_leaves_each_with_one_answer(
    tmp_path: Path, project: Path, era: Era
) -> None:
    async with at_work(tmp_path, project, era) as client:
        session = await client.session()
        before = server_pid(tmp_path)
        async with api(tmp_path) as http:
            await http.get("/api/v1/events")  # what was decided so far is on disk then
        arguments = {"substring_pattern": "class Cart", "project": str(project)}
        ids = [f"in-flight-{number}" for number in range(100)]
        for number in ids:
            await client.begin("tools/call", {"name": "search_for_pattern", "arguments": arguments}, as_id=number)
        with anyio.fail_after(PATIENCE_S):
            while not client.answers.keys() & set(ids):  # the first is through, the others are under way
                await client.read()
        os.kill(before, signal.SIGKILL)
        for number in ids:
            answer = await client.answer(number)
            assert "cart.py" in text_of(answer["result"]), answer
        assert server_pid(tmp_path) != before
        assert await client.session() == session
        config = json.loads(text_of(await client.call("get_current_config")))
        assert config["active_project"]["root"] == str(project)


async def test_a_call_that_may_have_changed_something_is_not_repeated(tmp_path: Path) -> None:
    """The server is frozen while it has the call, so that nobody can know how far it came."""
    async with serving_child(tmp_path) as child, proxying(tmp_path, "modern", "--no-start") as client:
        await client.ask("tools/list")
        os.kill(child.process.pid, signal.SIGSTOP)
        await client.begin("tools/call", {"name": "no_such_tool_that_is_known_to_read", "arguments": {}}, as_id="edit")
        await client.begin("tools/list", as_id="read")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            while len(psutil.Process(client.process.pid).net_connections()) < 3:  # two calls and its presence
                await anyio.sleep(0.01)
        await child.end(signal.SIGKILL)
        message = (await client.answer("edit"))["error"]["message"]
        assert "may have been executed" in message
        async with serving_child(tmp_path):
            assert "result" in await client.answer("read")


IMPATIENT = """
from serena_central.proxy import http1, link, main
http1.SILENCE_S = link.PROOF_S = 1.0
main.main()
"""


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_on_a_kept_connection_to_a_server_that_hangs_ends_and_says_so(tmp_path: Path, era: Era) -> None:
    """The proof that it lives is asked for when a connection is opened; on one that was kept a call waited for ever."""
    command = (sys.executable, "-c", IMPATIENT)
    async with serving_child(tmp_path) as child, proxying(tmp_path, era, "--no-start", command=command) as client:
        await client.open()
        await client.ask("tools/list")
        os.kill(child.process.pid, signal.SIGSTOP)
        try:
            with anyio.fail_after(PATIENCE_S):
                await client.begin("tools/call", {"name": "list_projects", "arguments": {}}, as_id="read")
                message = (await client.answer("read"))["error"]["message"]
                assert f"kill -CONT {child.process.pid}" in message
                assert "may have been executed" not in message
                await client.begin("tools/call", {"name": "no_such_tool", "arguments": {}}, as_id="edit")
                await client.answer("edit")
        finally:
            os.kill(child.process.pid, signal.SIGCONT)
        assert text_of(await client.call("list_projects")).startswith("[")


async def test_a_call_that_takes_longer_than_a_silence_has_its_answer(tmp_path: Path, project: Path) -> None:
    settings = {"SERENA_CENTRAL_EXECUTE_SHELL": "true", "SERENA_CENTRAL_TRUST": "always"}
    command = (sys.executable, "-c", IMPATIENT)
    async with serving_child(tmp_path, **settings), proxying(tmp_path, "handshake", command=command) as client:
        await client.open()
        arguments = {"command": "sleep 4; echo over", "project": str(project)}
        assert "over" in text_of(await client.call("execute_shell_command", **arguments))


@pytest.mark.parametrize("era", ERAS)
async def test_a_restart_keeps_sessions_and_a_quiet_client_is_back_by_itself(
    tmp_path: Path, project: Path, era: Era
) -> None:
    async with serving_child(tmp_path), proxying(tmp_path, era, "--no-start", "--mode", "planning") as client:
        await client.open(roots={})
        await client.call("activate_project", project=str(project))
        session = await client.session()
        async with api(tmp_path) as http:
            before = (await http.get(f"/api/v1/sessions/{session}")).json()
        assert before["active_modes"] == ["planning"]
        assert before["client_pid"] == os.getpid()
    async with serving_child(tmp_path) as child, proxying(tmp_path, era, "--no-start") as client:
        await client.open()
        await client.call("activate_project", project=str(project))
        session = await client.session()
        await child.end(signal.SIGTERM)
        async with serving_child(tmp_path):
            await until_state(tmp_path, session, "connected", 30)
            config = json.loads(text_of(await client.call("get_current_config")))
            assert config["session"] == session
            assert config["active_project"]["root"] == str(project)


@pytest.mark.slow
async def test_a_server_that_forgot_everything_is_begun_with_again(tmp_path: Path, project: Path) -> None:
    async with serving_child(tmp_path) as child, proxying(tmp_path, "handshake", "--no-start") as client:
        await client.open()
        session = await client.session()
        await child.end(signal.SIGKILL)
        for file in (tmp_path / "home").glob("serena-central.db*"):
            file.unlink()
        async with serving_child(tmp_path):
            assert await client.session() == session
            async with api(tmp_path) as http:
                assert (await http.get(f"/api/v1/sessions/{session}")).json()["client_name"] == "proxied"


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_a_killed_session_stays_killed_behind_its_proxy_and_after_a_restart(tmp_path: Path, era: Era) -> None:
    async with serving_child(tmp_path) as child, proxying(tmp_path, era, "--no-start") as client:
        await client.open()
        session = await client.session()
        await run_command(tmp_path, "kill", session)
        assert "terminated" in str(await client.ask("tools/call", {"name": "list_projects", "arguments": {}}))
        await child.end(signal.SIGTERM)
        async with serving_child(tmp_path):
            assert "terminated" in str(await client.ask("tools/call", {"name": "list_projects", "arguments": {}}))


@pytest.mark.parametrize("era", ERAS)
async def test_the_server_sees_how_a_proxy_ends(tmp_path: Path, era: Era) -> None:
    async with serving_child(tmp_path):

        async def begun(client: ProxyClient) -> str:
            await client.open()
            session = await client.session()
            with anyio.fail_after(PATIENCE_S):
                async with api(tmp_path) as http:
                    while not (await http.get(f"/api/v1/sessions/{session}")).json()["open_streams"]:
                        await anyio.sleep(0.01)
            return session

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            async with proxying(tmp_path, era) as client:
                session = await begun(client)
                client.process.send_signal(number)
                assert await client.ended() == 0
                assert await state_of(tmp_path, session) == "disconnected"
        async with proxying(tmp_path, era) as client:
            session = await begun(client)
            await client.end_input()
            assert await client.ended() == 0
            assert await state_of(tmp_path, session) == "disconnected"
        async with proxying(tmp_path, era) as client:
            session = await begun(client)
            client.process.kill()
            await until_state(tmp_path, session, "disconnected", 10)


async def test_a_proxy_goes_with_its_parent_though_stdin_stays_open(tmp_path: Path) -> None:
    async with serving_child(tmp_path):
        read, write = os.pipe()
        script = (
            "import subprocess, sys, time\n"
            "p = subprocess.Popen([sys.executable, '-I', '-m', 'serena_central.proxy'], stdin=int(sys.argv[1]))\n"
            "print(p.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        parent = await anyio.open_process(
            [sys.executable, "-c", script, str(read)],
            env=environment(tmp_path),
            pass_fds=[read],
            stderr=subprocess.DEVNULL,
        )
        try:
            assert parent.stdout
            said = BufferedByteReceiveStream(parent.stdout)
            pid = int(await said.receive_until(b"\n", 100))
            os.write(write, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            with anyio.fail_after(PATIENCE_S):
                assert b"error" in await said.receive_until(b"\n", 10_000)  # no session yet; but it runs
            parent.kill()
            await parent.wait()
            with anyio.fail_after(60):
                await until_gone([pid])
            assert not alive(pid)
        finally:
            os.close(read)
            os.close(write)
            await parent.aclose()
