"""Hooks for the start and the end of sessions, around sessions of a real server."""

import json
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import HookBlocked, SerenaCentralError, SessionHalted
from serena_central.gates import log
from tests.support.central import RunningCentral, running_central, running_parts, session_of

pytestmark = pytest.mark.anyio

START = 'echo "start $CLAUDE_SESSION_ID $PROJECT_ROOT" >> order'
END = 'echo "end $CLAUDE_SESSION_ID $PROJECT_ROOT" >> order'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path / "shop")


def made(root: Path, **events: list[Any]) -> Path:
    (root / ".claude").mkdir(parents=True, exist_ok=True)
    (root / ".git").mkdir(exist_ok=True)
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": events}))
    return root


def command(line: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": line, **more}]}


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path) as central:
        yield central


async def call(central: Application, root: Path, session: str = "s", **facts: Any) -> str:
    asked = {"project": str(root), "relative_path": "."}
    answer = await central.caller.call(session_of(central, explicit_id=session, **facts), "list_dir", asked)
    return "\n".join(answer.blocks)


async def order(root: Path, lines: int) -> list[str]:
    """What hooks wrote, as soon as these are so many lines."""

    def found() -> list[str]:
        return (root / "order").read_text().splitlines() if (root / "order").exists() else []

    await until(lambda: len(found()) >= lines)
    return found()


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not holds():
            await anyio.sleep(0.01)


async def test_hooks_that_tell_the_server_what_a_client_does_run_in_that_client_alone(
    central: Application, root: Path
) -> None:
    own = "echo own >> order; A=b /x/python3 -I -m serena_central.hook session-start --client claude-code || exit 0"
    made(
        root,
        PreToolUse=[command("echo own >> order; serena-hook enforce", "Grep|Glob|Read")],
        SessionStart=[command(own), command("echo theirs >> order")],
    )
    await call(central, root)
    assert await order(root, 1) == ["theirs"]


async def test_a_session_starts_at_its_first_call_in_a_project_and_ends_once(central: Application, root: Path) -> None:
    """REQ-HOOKS-001: SessionStart and SessionEnd."""
    made(
        root,
        PreToolUse=[command("echo before >> order")],
        SessionStart=[
            command(START, "startup"),
            command("echo never >> order", "resume"),
            command("echo use tabs"),
            command("echo and single quotes"),
        ],
        SessionEnd=[command(END)],
    )
    *_, tabs, quotes = (await call(central, root)).splitlines()
    assert (tabs.endswith("'use tabs'"), quotes.endswith("'and single quotes'")) == (True, True)
    assert "use tabs" not in await call(central, root)
    central.sessions.terminate("s", "a test")
    started, ended = f"start s {root}", f"end s {root}"
    assert await order(root, 4) == [started, "before", "before", ended]
    central.sessions.disconnect("s", "it disconnected", for_good=True)
    assert not central.places.begun_file.exists()
    await until(lambda: len(log.newest(root, 10)) == 6)
    assert {one.outcome for one in log.newest(root, 10)} == {"passed"}


async def test_calls_at_once_wait_for_one_start(central: Application, root: Path) -> None:
    made(root, SessionStart=[command("echo x >> order; until [ -f go ]; do sleep 0.01; done; echo y >> order")])
    answers: list[str] = []

    async def one() -> None:
        answers.append(await call(central, root))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
        assert await order(root, 1) == ["x"]
        assert not answers
        (root / "go").touch()
    assert len(answers) == 3
    assert await order(root, 2) == ["x", "y"]


@pytest.mark.parametrize("how", ["goodbye", "kill"])
async def test_a_session_that_is_back_while_it_starts_waits_for_its_own_start(
    central: Application, root: Path, how: str
) -> None:
    counted = "n=1; if [ -f order ]; then n=2; fi; echo x >> order"  # before it tells that it has begun
    line = f"{counted}; until [ -f go$n ]; do sleep 0.01; done; echo start number $n"
    made(root, SessionStart=[command(line)])
    answers: list[str] = []

    async def one() -> None:
        try:
            answers.append(await call(central, root))
        except SerenaCentralError as error:
            answers.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        await order(root, 1)
        if how == "goodbye":
            central.sessions.disconnect("s", "it disconnected", for_good=True)
        else:
            central.sessions.terminate("s", "a test")
            central.sessions.revive("s")
        await until(lambda: len(answers) == 1)
        tasks.start_soon(one)
        await order(root, 2)
        (root / "go1").touch()
        await until(lambda: len(log.newest(root, 10)) == 1)
        (root / "go2").touch()
    assert "start number 2" in answers[1]
    assert "start number" not in await call(central, root)


async def test_a_call_that_is_cancelled_leaves_its_start_to_the_next_answer(central: Application, root: Path) -> None:
    made(root, SessionStart=[command("echo x >> order; until [ -f go ]; do sleep 0.01; done; echo use tabs")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, central, root)
        await order(root, 1)
        tasks.cancel_scope.cancel()
    (root / "go").touch()
    assert "use tabs" in await call(central, root)
    assert await order(root, 1) == ["x"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no network >&2; exit 2", "no network"),
        ("echo no network >&2; exit 1", "exit code 1: 'no network'"),
        ("./missing.sh", "There is no file"),
        ("kill -9 $$", "killed by signal 9"),
    ],
)
async def test_a_start_that_fails_is_reported_and_stops_nothing(
    central: Application, root: Path, line: str, said: str
) -> None:
    made(root, SessionStart=[command(line)], SessionEnd=[command("echo end >> order; exit 1")])
    assert said in await call(central, root)
    assert said not in await call(central, root)
    central.sessions.terminate("s", "a test")
    assert await order(root, 1) == ["end"]
    await until(lambda: any(one.event == "SessionEnd" for one in log.newest(root, 10)))
    assert central.gating.halted() == {}


async def test_a_start_may_halt_its_session_in_so_many_words(central: Application, root: Path) -> None:
    made(root, SessionStart=[command("""echo '{"continue": false, "stopReason": "out of office"}'""")])
    with pytest.raises(SessionHalted, match="out of office"):
        await call(central, root)
    assert list(central.gating.halted()) == ["s"]


async def test_a_start_in_the_background_reports_later(central: Application, root: Path) -> None:
    line = "until [ -f go ]; do sleep 0.01; done; echo use tabs"
    made(root, SessionStart=[{"hooks": [{"type": "command", "command": line, "async": True}]}])
    assert "use tabs" not in await call(central, root)
    (root / "go").touch()
    await until(lambda: bool(log.newest(root, 10)))
    told = [await call(central, root) for _ in range(2)]
    assert "use tabs" in "".join(told)


async def test_what_fails_in_the_background_is_logged_and_ends_nothing(
    central: Application, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise KeyError("a mistake")

    assert central.gating.start(fail)
    await until(lambda: "a mistake" in caplog.text)
    made(root, SessionStart=[command(START)])
    await call(central, root)
    assert await order(root, 1) == [f"start s {root}"]


async def test_only_a_session_that_is_over_has_ended(central: Application, root: Path) -> None:
    made(root, SessionStart=[command(START)], SessionEnd=[command(END)])
    started, ended = f"start s {root}", f"end s {root}"
    await call(central, root)
    central.sessions.disconnect("s", "its stream was closed")
    await call(central, root)  # it is back
    central.sessions.disconnect("s", "its stream was closed")
    session = central.sessions.get("s")
    session.disconnected_at = time.time() - central.sessions.policy.retention_s - 1
    central.sessions.sweep()
    assert await order(root, 2) == [started, ended]
    await call(central, root)
    central.sessions.disconnect("s", "its stream was closed")
    central.sessions.disconnect("s", "it disconnected", for_good=True)  # said after its connection was lost
    assert await order(root, 4) == [started, ended] * 2


async def test_a_restart_starts_and_ends_no_session(tmp_path: Path, root: Path) -> None:
    made(root, SessionStart=[command(START)], SessionEnd=[command(END)])
    for _ in range(2):
        async with running_parts(tmp_path) as central:
            await call(central, root)
    assert await order(root, 1) == [f"start s {root}"]
    async with running_parts(tmp_path) as central:
        await call(central, root)
        central.sessions.terminate("s", "a test")
        assert await order(root, 2) == [f"start s {root}", f"end s {root}"]


async def test_a_session_that_a_restart_does_not_bring_back_has_ended(tmp_path: Path, root: Path) -> None:
    made(root, SessionStart=[command(START)], SessionEnd=[command(END)])
    async with running_parts(tmp_path) as central:
        await call(central, root)
    for file in (tmp_path / "home").glob("serena-central.db*"):
        file.unlink()
    async with running_parts(tmp_path):
        assert await order(root, 2) == [f"start s {root}", f"end s {root}"]


async def test_a_client_that_says_goodbye_has_ended_its_session(tmp_path: Path, root: Path) -> None:
    made(root, SessionStart=[command("echo start >> order")], SessionEnd=[command("echo end >> order")])
    asked: dict[str, Any] = {"project": str(root), "relative_path": "."}
    async with running_central(tmp_path) as running:
        async with running.raw("handshake") as client:
            await client.call("list_dir", **asked)
            sent = client.headers("DELETE", {})
            assert (await client.http.delete("/mcp", headers=sent)).status_code == 200
        assert await order(root, 2) == ["start", "end"]
        async with running.raw("modern") as client:
            await client.call("list_dir", **asked)
        assert (await order(root, 3))[2:] == ["start"]
        async with running.http() as http:
            (session,) = [one for one in running.central.sessions.sessions() if one.calls and not one.disconnected_at]
            assert (await http.post(f"/api/v1/sessions/{session.id}/close")).status_code == 200
        assert (await order(root, 4))[3:] == ["end"]


async def test_hooks_of_the_user_run_once_in_a_session_of_several_projects(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = {"SessionStart": [command(f"cd {tmp_path}; {START}")], "SessionEnd": [command(f"cd {tmp_path}; {END}")]}
    (tmp_path / "user").mkdir()
    (tmp_path / "user/settings.json").write_text(json.dumps({"hooks": events}))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user"))
    other = made(tmp_path / "other", SessionStart=[command(START)])
    async with running_parts(tmp_path) as central:
        await call(central, root)
        await call(central, other)
        central.sessions.terminate("s", "a test")
        assert await order(tmp_path, 2) == [f"start s {root}", f"end s {root}"]
        assert await order(other, 1) == [f"start s {other}"]


async def test_claude_code_runs_them_itself_in_its_own_folder(central: Application, root: Path, tmp_path: Path) -> None:
    other = made(tmp_path / "other", SessionStart=[command(START)], SessionEnd=[command(END)])
    made(root, SessionStart=[command(START)], SessionEnd=[command(END)])
    facts = {"client_name": "claude-code", "working_folder": str(root)}
    await call(central, root, **facts)
    await call(central, other, **facts)
    central.sessions.terminate("s", "a test")
    assert await order(other, 2) == [f"start s {other}", f"end s {other}"]
    assert not (root / "order").exists()


async def report(running: RunningCentral, root: Path, event: str, pid: int = 0, **said: Any) -> Any:
    given = {"session_id": "talk", "cwd": str(root), **said}
    async with running.http() as http:
        answered = await http.post(
            f"/api/v1/gates/{event}", json={"client": "gemini", "said": given, "ancestors": [4999999, pid]}
        )
    assert answered.status_code == 200, answered.text
    return answered.json()


async def test_what_a_clients_own_hook_reported_does_not_run_again(tmp_path: Path, root: Path) -> None:
    made(root, SessionStart=[command("echo start >> order")], SessionEnd=[command("echo end >> order")])
    async with running_central(tmp_path) as running:
        central = running.central
        facts: dict[str, Any] = {"credential": central.token.credential, "client_pid": 4999998}
        await report(running, root, "SessionStart", 4999998, source="startup")  # before it has connected to /mcp
        await call(central, root, **facts)
        assert await order(root, 1) == ["start"]
        await report(running, root, "SessionEnd", 4999998, reason="clear")
        central.sessions.terminate("s", "a test")
        assert await order(root, 2) == ["start", "end"]

        await call(central, root, "late", **facts | {"client_pid": 4999997})
        await report(running, root, "SessionStart", 4999997, source="startup")
        central.sessions.disconnect("late", "it disconnected", for_good=True)
        await report(running, root, "SessionEnd", 4999997, reason="exit")
        assert await order(root, 4) == ["start", "end"] * 2

        await report(running, root, "SessionStart", 4999996, source="startup")
        await call(central, root, "silent", **facts | {"client_pid": 4999996})
        central.sessions.terminate("silent", "a test")  # Codex reports no end
        assert await order(root, 6) == ["start", "end"] * 3


async def test_an_untrusted_repository_starts_nothing_and_a_trusted_one_at_its_next_call(tmp_path: Path) -> None:
    root = made(tmp_path / "shop", SessionStart=[command(START)], PreToolUse=[command("exit 2")])
    async with running_parts(tmp_path, {"trusted_roots": []}) as central:
        await call(central, root)
        assert not (root / "order").exists()
        central.trust.approve(root, central.trust.standing(root).digest, by="a test")
        with pytest.raises(HookBlocked):
            await call(central, root)
        assert await order(root, 1) == [f"start s {root}"]
