"""How upstreams end, what they are given, and what is kept of them."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from serena_central.hub.callers import Caller
from serena_central.hub.snapshots import UpstreamState
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.02)


async def test_one_that_nobody_calls_is_stopped_and_starts_again(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-008"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK | {"hub.idle_stop_s": 1}) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="1")) == "1"
        await until(lambda: bool(events_in(log, "eof")))
        assert text_of(await client.call("one__echo", text="2")) == "2"
        assert len(events_in(log, "started")) == 2


async def test_one_that_answers_no_health_check_is_replaced(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-008"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), silent_pings=True)})
    quick = QUICK | {"hub.health_interval_s": 0.2, "hub.health_timeout_s": 0.3}
    async with running_central(tmp_path, quick) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="1")) == "1"
        hub = await running.central.upstreams.hub()
        await until(lambda: hub.upstreams()[0].state == "paused")
        assert "health check" in hub.upstreams()[0].why
        assert text_of(await client.call("one__echo", text="2")) == "2"


async def test_a_call_of_one_that_closes_its_stdout_fails_before_its_program_has_ended(
    tmp_path: Path, user: Path
) -> None:
    settings_of_user(user, {"one": scripted(ignore_sigterm=True)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        pid = int(text_of(await client.call("one__who")))
        assert "its connection ended" in text_of(await client.call("one__mute"))
        assert psutil.pid_exists(pid)
        assert int(text_of(await client.call("one__who"))) != pid


@pytest.mark.parametrize("turns", range(8))
async def test_a_call_behind_the_end_of_a_run_is_made_by_the_next(tmp_path: Path, user: Path, turns: int) -> None:
    """However many turns of the event loop lie between."""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="1")) == "1"
        hub = await running.central.upstreams.hub()
        (process,) = hub.processes()
        process.stop("the memory budget is exceeded")
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        answer = await hub.call(
            hub.of(tmp_path).specs["one"], "echo", {"text": "2"}, Caller(session="s", root=tmp_path)
        )
        assert text_of(answer) == "2"
        assert len(events_in(log, "tools/call")) == len(events_in(log, "started")) == 2


async def test_what_belongs_to_a_session_ends_with_it(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log)) | {"sharing": "session"}})
    async with (
        running_central(tmp_path, QUICK) as running,
        running.raw("modern", x_serena_session="a") as first,
        running.raw("modern", x_serena_session="b") as second,
    ):
        pids = {text_of(await one.call("one__who")) for one in (first, second)}
        assert len(pids) == 2
        await end(running, "a")
        await until(lambda: len(events_in(log, "eof")) == 1)
        assert text_of(await second.call("one__who")) in pids


async def end(running: RunningCentral, session: str) -> None:
    running.central.sessions.terminate(session, "a test")


async def test_a_child_gets_what_the_configuration_says_and_no_secret_is_seen(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-MCP-007, REQ-INTEGRATION-001"""
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv("OWN_SECRET", "canary-of-the-server")
    monkeypatch.setenv("NAMED", "canary-that-is-named")
    helper = tmp_path / "helper"
    helper.write_text(f"#!/bin/sh\necho started >> {tmp_path}/helped\necho canary-of-the-helper\n")
    helper.chmod(0o755)
    entry = scripted(log=str(log)) | {"env": {"TOKEN": "${NAMED}", "BOTH": "entry"}}
    settings_of_user(user, {"one": entry}, env={"BOTH": "settings", "MORE": "settings"}, apiKeyHelper=str(helper))
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="canary-of-the-helper canary-that-is-named"))
        assert text_of(await client.call("one__echo", text="2"))
    (started,) = events_in(log, "started")
    environment = started["environment"]
    assert environment["TOKEN"] == "canary-that-is-named"
    assert (environment["BOTH"], environment["MORE"]) == ("entry", "settings")
    assert environment["ANTHROPIC_API_KEY"] == "canary-of-the-helper"
    assert environment["SERENA_CENTRAL_HOPS"] == "1"
    assert environment["PATH"]
    assert "OWN_SECRET" not in environment
    assert (tmp_path / "helped").read_text() == "started\n"
    wire = (tmp_path / "home" / "logs" / "mcp" / "one.log").read_text()
    assert "tools/call" in wire
    assert "canary" not in wire
    kept = [path for path in (tmp_path / "home" / "upstreams").iterdir() if "canary" in path.read_text()]
    assert not kept


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
async def test_none_is_left_when_the_server_ends(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted(ignore_sigterm=True, fork=True)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        pid = int(text_of(await client.call("one__who")))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_one_that_was_stopped_stays_stopped_however_many_waited_for_its_start(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log)), "bad": scripted(log=str(tmp_path / "bad"), exit_at_start=3)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(partial(client.call, "one__echo", text=str(number)))
        hub = await running.central.upstreams.hub()
        assert await hub.stop("one") == 1
        async with running.raw("modern") as other, anyio.create_task_group() as tasks:
            for name in ("bad__x", "bad__y"):
                tasks.start_soon(partial(other.call, name))
        for _ in range(20):  # what was started by mistake would have its turn
            await anyio.sleep(0.01)
        assert hub.state("one") is UpstreamState.STOPPED
        assert len(events_in(log, "started")) == 1
        assert hub.state("bad") is UpstreamState.PAUSED
