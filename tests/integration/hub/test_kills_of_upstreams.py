"""`kill -9` of the server, of an upstream and of its supervisor: no process is left, only calls in progress fail."""

import os
import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from tests.support.central import running_central
from tests.support.child import alive, serving_child, until_gone
from tests.support.mcp import RawClient, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")]


STUBBORN = {"ignore_sigterm": True, "fork": True}
"""Ends at no SIGTERM and at no closed stdin, and has a child in a session of its own."""


async def test_kill_9_of_the_server_leaves_no_upstream_alive(tmp_path: Path, user: Path) -> None:
    entries = {sharing: scripted(**STUBBORN) | {"sharing": sharing} for sharing in ("shared", "project", "session")}
    settings_of_user(user, entries)
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)) as child:
        async with child.http() as http:
            client = RawClient(http, "handshake")
            await client.open()
            pids = [int(text_of(await client.call(f"{name}__who"))) for name in entries]
        below = child.tree()[1:]
        assert set(pids) < set(below)
        assert [psutil.Process(pid).name() for pid in below].count("sleep") == len(entries)
        assert await child.end(signal.SIGKILL) == -signal.SIGKILL
        await until_gone(below)


async def test_kill_9_of_an_upstream_is_not_noticed_by_built_in_tools(tmp_path: Path, user: Path) -> None:
    """REL-001"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log)), "two": scripted()})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "notes.txt").write_text("apples\n")
    async with running_central(tmp_path, QUICK) as running:
        answers: list[str] = []

        async def waits(number: int) -> None:
            async with running.raw("modern", x_serena_session=f"s{number}") as client:
                answers.append(text_of(await client.call("one__slow", text="60")))

        async with (
            running.raw("modern", x_serena_session="a", x_serena_project=str(root)) as client,
            anyio.create_task_group() as tasks,
        ):
            pid, other = int(text_of(await client.call("one__who"))), text_of(await client.call("two__who"))
            for number in range(4):
                tasks.start_soon(waits, number)
            with anyio.fail_after(30):
                while len(events_in(log, "tools/call")) < 5:
                    await anyio.sleep(0.02)
            os.kill(pid, signal.SIGKILL)
            assert "apples" in text_of(await client.call("search_for_pattern", substring_pattern="apples"))
            with anyio.fail_after(30):
                while len(answers) < 4:
                    await anyio.sleep(0.02)
            assert all("not available" in one and "exit code -9" in one for one in answers)
            assert int(text_of(await client.call("one__who"))) != pid
            assert text_of(await client.call("two__who")) == other
            assert not alive(pid)
    assert len(events_in(log, "started")) == 2


async def test_kill_9_of_the_supervisor_of_an_upstream_takes_it_along(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        pid = int(text_of(await client.call("one__who")))
        supervisor = psutil.Process(pid).parent()
        assert supervisor is not None
        supervisor.kill()
        await until_gone([pid])
        hub = await running.central.upstreams.hub()
        with anyio.fail_after(30):
            while hub.state("one") == "ready":
                await anyio.sleep(0.01)
        assert int(text_of(await client.call("one__who"))) != pid


async def test_what_outlives_the_server_and_the_supervisor_is_ended_by_the_next_server(
    tmp_path: Path, user: Path
) -> None:
    """A child of an upstream in a session of its own: with both killed, nobody is left who knows of it."""
    settings_of_user(user, {"one": scripted(fork=True)})
    ledger = tmp_path / "home" / "children.json"
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)) as child:
        async with child.http() as http:
            client = RawClient(http, "modern")
            upstream = psutil.Process(int(text_of(await client.call("one__who"))))
        (forked,) = upstream.children()
        supervisor = upstream.parent()
        assert supervisor is not None
        with anyio.fail_after(60):
            while str(forked.pid) not in ledger.read_text():
                await anyio.sleep(0.05)
        supervisor.suspend()  # else it would end all as soon as the server is gone
        assert await child.end(signal.SIGKILL) == -signal.SIGKILL
        supervisor.kill()
        await until_gone([upstream.pid])
    assert alive(forked.pid)
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)):
        await until_gone([forked.pid])


async def test_sixteen_sessions_of_both_eras_have_one_child(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)) as child, child.http() as http:

        async def one(number: int) -> None:
            client = RawClient(http, "modern" if number % 2 else "handshake")
            await client.open()
            for step in range(5):
                text = f"{number}-{step}"
                assert text_of(await client.call("one__echo", text=text)) == text

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(one, number)
        lines = [psutil.Process(pid).cmdline() for pid in child.tree()[1:]]
        command = scripted()
        assert lines.count([command["command"], *command["args"]]) == 1
