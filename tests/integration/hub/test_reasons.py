"""Why an upstream's tools are missing: whoever asks for them is answered with the reason, and with what to do."""

import json
import re
import sys
from pathlib import Path

import anyio
import pytest

from serena_central.hub.snapshots import UpstreamState
from serena_central.tools import offer
from tests.support.central import running_central
from tests.support.child import PATIENCE_S, PROGRAM, Ended, environment, run_command, serving_child
from tests.support.mcp import Era, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio

ENDS = "exit code 3; its stderr ends with: cannot start: no database"


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_says_why_its_server_does_not_start(tmp_path: Path, user: Path, era: Era) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"bad": scripted(log=str(log), exit_at_start=3), "good": scripted()})
    async with running_central(tmp_path, QUICK | {"hub.listing": "search"}) as running, running.raw(era) as client:
        notes = json.dumps(await client.call("search_tools", query="echo"))
        assert "The tools of 'bad' are not known" in notes
        assert ENDS in notes
        assert "begins with bad__" in notes
        assert "good__echo" in notes
        for tool, arguments in (
            ("bad__anything", {}),
            ("call_upstream_tool", {"name": "bad__anything"}),
        ):
            refused = await client.call(tool, **arguments)
            assert refused["isError"] is True
            assert ENDS in text_of(refused)
            assert "Nothing was sent to it" in text_of(refused)
        assert len(events_in(log, "started")) == 3
        assert "serena-central mcp restart bad" in text_of(await client.call("bad__anything"))
        notes = json.dumps(await client.call("search_tools", query="echo"))
        assert "It starts again after `serena-central mcp restart bad`" in notes
        assert len(events_in(log, "started")) == 4
        assert "no tool named 'worse__anything'" in text_of(await client.call("worse__anything"))


async def test_a_search_says_that_there_are_no_servers(tmp_path: Path, user: Path) -> None:
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        found = await client.call("search_tools", query="echo")
        assert "This session has no other MCP server. " in found["content"][1]["text"]


async def test_a_server_that_starts_at_last_answers_the_call_that_started_it(tmp_path: Path, user: Path) -> None:
    """It is missing at first: no list of its tools is known, and no list of tools starts it again."""
    command = tmp_path / "server"
    settings_of_user(user, {"late": scripted() | {"command": str(command)}})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert str(command) in text_of(await client.call("late__echo", text="x"))
        command.symlink_to(sys.executable)
        assert text_of(await client.call("late__echo", text="x")) == "x"


async def test_the_reason_stands_while_the_next_start_runs(tmp_path: Path, user: Path) -> None:
    """The second start never ends."""
    once = tmp_path / "once"
    script = f"import os, sys, time; (time.sleep(60) if os.path.exists({str(once)!r}) else open({str(once)!r}, 'w')); "
    script += "sys.stderr.write('no database'); sys.exit(3)"
    settings_of_user(user, {"bad": {"command": sys.executable, "args": ["-I", "-S", "-c", script]}})
    settings = QUICK | {"hub.learn_wait_s": 0.5}
    async with running_central(tmp_path, settings) as running, running.raw("modern") as client:
        assert "no database" in text_of(await client.call("bad__x"))
        hub = await running.central.upstreams.hub()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call, "bad__x")
            with anyio.fail_after(30):
                while hub.state("bad") is not UpstreamState.STARTING:
                    await anyio.sleep(0.01)
            (shown,) = hub.upstreams()
            assert shown.why.startswith("its last run failed: it ended with exit code 3")
            async with running.raw("modern") as other:
                notes = json.dumps(await other.call("search_tools", query="x"))
                assert "its last run failed: it ended with exit code 3" in notes
            tasks.cancel_scope.cancel()


async def test_who_waits_for_a_hub_that_can_not_be_loaded_is_told(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_module: str) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(offer, "import_patiently", never)
    monkeypatch.setattr(offer, "RUNS_WITHIN_S", 0.1)
    settings_of_user(user, {"good": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        refused = await client.call("good__echo", text="x")
        assert refused["isError"] is True
        assert "the hub has not started within 0.1 s" in text_of(refused)


async def test_the_entry_by_which_a_list_is_unusable_is_named(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"bad": scripted(tools=[{"name": "odd", "description": "it takes nothing"}])})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        said = text_of(await client.call("bad__odd"))
        assert re.search(r"list of tools does not follow the protocol: tools\.\d+\.inputSchema: Field required", said)


async def test_the_command_line_says_why(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"bad": scripted(exit_at_start=3)})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)):

        async def output(*arguments: str) -> str:
            done = await run_command(tmp_path, "mcp", *arguments, cwd=root, CLAUDE_CONFIG_DIR=str(user))
            return done.out + done.err

        said = await output("call", "bad", "x")
        assert f"it ended with {ENDS}" in said
        assert "Nothing was sent to it" in said
        assert f"paused: it ended with {ENDS}" in await output("list")
        assert ENDS in await output("list", "--tools")


async def test_the_command_line_and_the_api_say_that_a_tool_reported_a_failure(tmp_path: Path, user: Path) -> None:
    """Its text goes to stdout as any answer does: without the code a script takes it for one."""
    settings_of_user(user, {"one": scripted()})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    through_us = ("call_upstream_tool", "--name", "one__error", "--arguments", '{"arguments": {"text": "why"}}')
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)):

        async def run(*arguments: str) -> Ended:
            return await run_command(tmp_path, *arguments, cwd=root, CLAUDE_CONFIG_DIR=str(user))

        assert (await run("mcp", "call", "one", "echo", "--arg", "text=why")).code == 0
        for arguments in (("mcp", "call", "one", "error", "--arg", "text=why"), ("call", *through_us)):
            failed = await run(*arguments)
            assert (failed.out, failed.code) == ("failed: why\n", 1), failed
        shown = await run("mcp", "call", "one", "error", "--arg", "text=why", "--json")
        assert json.loads(shown.out)["failed"] is True
        assert shown.code == 1


async def test_call_prints_the_whole_answer_of_another_servers_tool_as_json(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)):
        shown = await run_command(
            tmp_path,
            "call",
            "call_upstream_tool",
            "--name",
            "one__all",
            "--json",
            cwd=root,
            CLAUDE_CONFIG_DIR=str(user),
        )
    assert "embedded" in json.loads(shown.out)["notes"], shown
    assert shown.err == ""


async def test_the_command_line_waits_for_the_tools_of_a_server_that_starts(tmp_path: Path, user: Path) -> None:
    go = tmp_path / "go"
    entry = scripted()
    wait = f"import os, sys, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
    entry["args"] = ["-I", "-S", "-c", f"{wait}os.execv(sys.executable, [sys.executable, *{entry['args']!r}])"]
    settings_of_user(user, {"late": entry})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with serving_child(tmp_path, CLAUDE_CONFIG_DIR=str(user)):
        variables = environment(tmp_path, CLAUDE_CONFIG_DIR=str(user))
        asking = [str(PROGRAM), "mcp", "list", "--tools"]
        async with await anyio.open_process(asking, cwd=root, env=variables) as process:
            assert process.stdout
            assert process.stderr
            with anyio.fail_after(PATIENCE_S):
                assert b"waiting for late to start" in await process.stderr.receive()
                go.touch()
                listed = b"".join([part async for part in process.stdout]).decode()
        assert "echo" in listed
        assert process.returncode == 0
