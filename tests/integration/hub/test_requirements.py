"""Rows of the requirements that no other file tests by name: the wire, the ends of processes, their privileges."""

import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer

from serena_central.hub import environment, stdio
from serena_central.hub.remote_client import CONNECT_S
from serena_central.processes.ladder import Ladder
from tests.support.central import running_central
from tests.support.mcp import text_of
from tests.support.serving import serving
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio


async def test_messages_are_json_rpc_with_sequential_ids(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-001"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        for number in range(3):
            assert text_of(await client.call("one__echo", text=str(number))) == str(number)
        refused = await client.call("one__refuse", text="not today")
        assert refused["isError"] is True
        assert "(-32001): not today" in text_of(refused)
    sent = [message for method in METHODS for message in (one["read"] for one in events_in(log, method))]
    assert {message["jsonrpc"] for message in sent} == {"2.0"}
    assert not [message for message in sent if message["method"].startswith("notifications/") and "id" in message]
    ids = sorted(message["id"] for message in sent if not message["method"].startswith("notifications/"))
    assert ids == list(range(ids[0], ids[0] + len(ids)))


METHODS = (
    "initialize",
    "notifications/initialized",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "tools/call",
)


async def test_the_log_holds_messages_garbage_and_stderr(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-002: stderr is separate from the protocol. A flood is cut."""
    settings_of_user(
        user, {"one": scripted(banner="Welcome!", stderr_bytes=2_000_000), "bad": scripted(exit_at_start=3)}
    )
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="hello")) == "hello"
        await client.call("bad__x")
    logs = tmp_path / "home" / "logs" / "mcp"
    wire = (logs / "one.log").read_text()
    for part in ("→ {", "← {", "· not a message: Welcome!", "! eeee"):
        assert part in wire, part
    assert "further lines of stderr are not shown" in wire
    assert "! cannot start: no database" in (logs / "bad.log").read_text()


@asynccontextmanager
async def remote(kind: str, calls: list[str], **options: Any) -> AsyncGenerator[str]:
    """A server over HTTP; `calls` gets the texts of calls as they begin."""
    server = MCPServer("remote")

    @server.tool()
    async def echo(text: str) -> str:
        """Echoes; `drop` never answers."""
        calls.append(text)
        if text == "drop":
            await anyio.sleep_forever()
        return text

    app = server.streamable_http_app(**options) if kind == "http" else server.sse_app()
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
    async with serving(uvicorn.Server(config)) as url:
        yield url + ("/mcp" if kind == "http" else "/sse")


@asynccontextmanager
async def cut_off(url: str, connections: list[Any]) -> AsyncGenerator[str]:
    """A way to `url`, whose `connections` can be closed in the middle of anything."""
    port = int(url.split(":")[2].split("/")[0])

    async def pass_on(source: Any, target: Any) -> None:
        try:
            async for data in source:
                await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        await target.aclose()

    async def serve(stream: Any) -> None:
        connections.append(stream)
        async with stream, await anyio.connect_tcp("127.0.0.1", port) as there, anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, stream, there)
            tasks.start_soon(pass_on, there, stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    front = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield url.replace(f":{port}", f":{front}")
        tasks.cancel_scope.cancel()


async def test_a_dropped_sse_stream_is_connected_again_and_no_call_is_made_twice(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-003"""
    calls: list[str] = []
    connections: list[Any] = []
    async with remote("sse", calls) as own, cut_off(own, connections) as url:
        settings_of_user(user, {"far": {"transport": "sse", "url": url}})
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            assert text_of(await client.call("far__echo", text="1")) == "1"
            answers: list[Any] = []

            async def dropped() -> None:
                answers.append(await client.call("far__echo", text="drop"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(dropped)
                with anyio.fail_after(30):
                    while "drop" not in calls:
                        await anyio.sleep(0.01)
                for one in connections:
                    await one.aclose()
            assert answers[0]["isError"] is True
            assert "may have been carried out in part" in text_of(answers[0])
            assert text_of(await client.call("far__echo", text="2")) == "2"
            assert calls == ["1", "drop", "2"]
            (shown,) = (await running.central.upstreams.hub()).upstreams()
            assert shown.restarts == 1  # and so it paused before it connected again


async def test_http_answers_may_be_json_and_each_request_has_a_deadline(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-004"""
    assert CONNECT_S == 30
    calls: list[str] = []
    async with remote("http", calls, json_response=True, stateless_http=True) as url:
        settings_of_user(user, {"far": {"transport": "http", "url": url, "timeout": 500}})
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            assert text_of(await client.call("far__echo", text="1")) == "1"
            late = await client.call("far__echo", text="drop")
            assert late["isError"] is True
            assert "0.5 s" in text_of(late)
            assert text_of(await client.call("far__echo", text="2")) == "2"


async def test_a_list_that_changed_is_asked_for_again(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-005"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        for _ in range(3):
            await client.ask("tools/list")
        assert len(events_in(log, "tools/list")) == 1
        await client.call("one__grow", text="added")
        with anyio.fail_after(30):
            while text_of(await client.call("one__added", text="x")) != "x":
                await anyio.sleep(0.01)
        assert len(events_in(log, "tools/list")) == 2


async def test_errors_of_tools_and_of_the_protocol_are_told_apart(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-006"""
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        failed = await client.call("one__error", text="no such file")
        assert (failed["isError"], text_of(failed)) == (True, "failed: no such file")
        refused = await client.call("one__refuse", text="no such file")
        assert "The MCP server 'one' refused the request (-32001): no such file" in text_of(refused)
    assert "no such file" in (tmp_path / "home" / "logs" / "mcp" / "one.log").read_text()


async def test_a_helper_that_does_not_end_is_killed_with_its_children(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-MCP-007: the bound is 10 s, here one."""
    assert environment.HELPER_S == 10
    monkeypatch.setattr(environment, "HELPER_S", 1.0)
    helper = tmp_path / "helper"
    helper.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/pid\necho canary-of-the-helper\nwait\n")
    helper.chmod(0o755)
    settings_of_user(user, {"one": scripted()}, apiKeyHelper=str(helper))
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        said = text_of(await client.call("one__echo", text="x"))
        assert "its apiKeyHelper did not end within 1 s and was killed" in said
        assert "canary" not in said
        pid = int((tmp_path / "pid").read_text())
        with anyio.fail_after(30):
            while psutil.pid_exists(pid):
                await anyio.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
async def test_a_server_is_asked_to_end_then_sent_sigterm_then_killed(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-MCP-008: five seconds for each step, here a fraction of one."""
    assert Ladder(closed_s=5.0, term_s=5.0) == stdio.STOPPING
    monkeypatch.setattr(stdio, "STOPPING", Ladder(closed_s=0.3, term_s=0.3))
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), ignore_sigterm=True)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        pid = int(text_of(await client.call("one__who")))
        hub = await running.central.upstreams.hub()
        began = time.monotonic()
        assert await hub.stop("one") == 1
        assert time.monotonic() - began >= 0.6
        assert not psutil.pid_exists(pid)
    lines = log.read_text().splitlines()
    assert [line for line in lines if '"event": "eof"' in line or '"event": "sigterm"' in line] == [
        '{"event": "eof"}',
        '{"event": "sigterm"}',
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
async def test_an_upstream_has_minimal_privileges(tmp_path: Path, user: Path) -> None:
    """SEC-004: a process group of its own, no descriptors but three, no gain of privileges, a limit of memory."""
    settings_of_user(user, {"one": scripted()})
    async with (
        running_central(tmp_path, QUICK | {"hub.memory_limit_mb": 4096}) as running,
        running.raw("modern") as client,
    ):
        pid = int(text_of(await client.call("one__who")))
        assert os.getpgid(pid) == pid
        assert os.getsid(pid) == pid
        assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
        opened = {int(one.name): str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
        own = psutil.Process(pid).environ()["TMPDIR"]  # locked while the process lives
        assert [path for number, path in opened.items() if number > 2] == [own]
        (limit,) = [line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "address space" in line]
        assert str(4096 << 20) in limit


async def test_a_call_costs_one_message_and_nothing_is_read_or_made_again(tmp_path: Path, user: Path) -> None:
    """PERF-003: what it takes is in `make bench ARGS=hub`."""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern", x_serena_session="own") as client:
        assert text_of(await client.call("one__echo", text="first")) == "first"
        upstreams, session = running.central.upstreams, running.central.sessions.get("own")
        hub = await upstreams.hub()
        before = len(log.read_text().splitlines())
        configured, tool = hub.of(session.rules_root), await upstreams.find(session, "one__echo")
        for number in range(20):
            assert text_of(await client.call("one__echo", text=str(number))) == str(number)
        assert hub.of(session.rules_root) is configured
        assert await upstreams.find(session, "one__echo") is tool  # with its compiled schema
    added = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    sent = [one["read"] for one in added if "read" in one]
    assert [(one["method"], one["params"]["arguments"]) for one in sent] == [
        ("tools/call", {"text": str(number)}) for number in range(20)
    ]
    assert [one for one in added if one.get("event") == "started"] == []


async def test_arguments_reach_a_command_as_they_are(tmp_path: Path, user: Path) -> None:
    """SEC-003: no shell reads an upstream's command. That of hooks is tested in test_gates.py."""
    touched = tmp_path / "touched"
    log = tmp_path / "log.jsonl"
    entry = scripted(log=str(log))
    entry["args"] += [f"; touch {touched}", f"$(touch {touched})", f"`touch {touched}`"]
    settings_of_user(user, {"one": entry})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text=f"$(touch {touched})")) == f"$(touch {touched})"
    assert not touched.exists()
