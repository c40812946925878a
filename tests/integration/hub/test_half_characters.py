"""Half of a surrogate pair, which is what is left of an emoji where a client cuts a text in JavaScript. JSON can escape
it, UTF-8 has no bytes for it, and many servers can't read the escape. It costs its own request, and nobody else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import InvalidArguments
from serena_central.hub.callers import Caller
from serena_central.hub.connection import Connection
from serena_central.hub.snapshots import UpstreamState
from tests.integration.hub.test_questions import remote
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio

HALF = "cut here: \ud83d"

REASON = "half of a surrogate pair"

ABLE: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {}}}


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.02)


async def refused(client: RawClient, tool: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> None:
    with anyio.fail_after(60):  # a call has 300 s
        failed = await client.call(tool, _meta, **arguments)
    assert failed.get("isError") is True, (tool, _meta, failed)
    assert REASON in text_of(failed), failed


async def unharmed(running: RunningCentral) -> None:
    (known,) = (await running.central.upstreams.hub()).upstreams()
    assert (known.state, known.restarts) == (UpstreamState.READY, 0)


async def test_a_call_with_one_is_refused_and_costs_those_who_share_the_process_nothing(
    tmp_path: Path, user: Path
) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with (
        running_central(tmp_path, QUICK) as running,
        running.raw("modern", x_serena_session="a") as client,
        running.raw("modern", x_serena_session="b") as other,
        anyio.create_task_group() as tasks,
    ):
        held: list[dict[str, Any]] = []

        async def hold() -> None:
            held.append(await other.call("one__elicit", text="never answered", _meta=ABLE))

        tasks.start_soon(hold)
        await until(lambda: bool(events_in(log, "tools/call")))
        for _ in range(5):  # more often than an upstream may crash
            await refused(client, "one__echo", text=HALF)
            await refused(client, "one__echo", ABLE, text=HALF)
            await refused(client, "call_upstream_tool", name="one__echo", arguments={"text": HALF})
        assert text_of(await client.call("one__echo", text="😀")) == "😀"
        await until(lambda: bool(held))
        assert held[0]["resultType"] == "input_required"
        await unharmed(running)
    assert len(events_in(log, "started")) == 1


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_call_with_one_is_refused_for_a_remote_server_as_well(tmp_path: Path, user: Path, kind: str) -> None:
    async with remote(kind) as url:
        settings_of_user(user, {"far": {"type": kind, "url": url}})
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            await refused(client, "far__echo", text=HALF)
            assert text_of(await client.call("far__echo", text="x")) == "x"
            await unharmed(running)


async def test_arguments_that_are_nested_too_deeply_cost_their_call_alone(tmp_path: Path, user: Path) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"
        failed = await client.call("one__echo", deep=deep)
        assert "it is nested too deeply" in text_of(failed)
        assert text_of(await client.call("one__echo", text="x")) == "x"
        await unharmed(running)


async def test_other_requests_with_one_are_refused_alike(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running:
        hub, caller = await running.central.upstreams.hub(), Caller(session="s", root=tmp_path)
        spec = hub.of(tmp_path).specs["one"]
        uri, ref = f"scripted://{HALF}", {"type": "ref/prompt", "name": "greet"}
        completed = {"ref": ref, "argument": {"name": "who", "value": HALF}}

        async def ask(request: Callable[[Connection], Any]) -> None:
            with pytest.raises(InvalidArguments, match=REASON):
                await hub.ask(spec, request, caller)

        await ask(lambda one: one.get_prompt("greet", {"who": HALF}, caller))
        await ask(lambda one: one.read_resource(uri, caller))
        await ask(lambda one: one.complete(completed, caller))
        with pytest.raises(InvalidArguments, match=REASON):
            await hub.subscribe(spec, uri, caller)
        assert text_of(await hub.call(spec, "echo", {"text": "x"}, caller)) == "x"
        await unharmed(running)


async def test_a_client_s_answer_with_one_is_an_error_for_the_server_that_asked(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})

    async def answer(_method: str, _params: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": HALF}}

    async with running_central(tmp_path, QUICK) as running:
        hub, caller = await running.central.upstreams.hub(), Caller(session="s", root=tmp_path, ask=answer)
        spec = hub.of(tmp_path).specs["one"]
        with anyio.fail_after(60):
            result = await hub.call(spec, "elicit", {"text": "who?"}, caller)
        assert REASON in json.loads(text_of(result))["error"]["message"]
        await unharmed(running)


async def test_hooks_get_what_was_given(tmp_path: Path, user: Path) -> None:
    seen = tmp_path / "seen.json"
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": f"cat >> {seen}; echo >> {seen}"}]}
    settings_of_user(user, {"one": scripted()}, hooks={"PreToolUse": [hook]})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern", x_serena_session="s") as client:
        await refused(client, "one__echo", text=HALF)
        assert text_of(await client.call("one__echo", text="x")) == "x"
        assert [json.loads(line)["tool_input"]["text"] for line in seen.read_text().splitlines()] == [HALF, "x"]
        await unharmed(running)


async def test_a_tool_of_ours_that_changes_something_says_what_is_wrong(tmp_path: Path, user: Path) -> None:
    """Such calls are recognised when they are sent again, by their arguments among others."""
    headers = {"x_serena_session": "s", "x_serena_call": "c1"}
    async with running_central(tmp_path) as running, running.raw("modern", **headers) as client:
        failed = await client.call("write_memory", project=str(tmp_path), memory_name="m", content=HALF)
        assert "The content of memory 'm' is not valid text" in text_of(failed)
