"""An MCP server that no configuration has any more ends by itself, whatever it was doing and whoever still asks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import UpstreamUnavailable
from serena_central.hub import hub as hub_module
from serena_central.hub.callers import Caller
from serena_central.hub.hub import Hub
from serena_central.hub.snapshots import UpstreamState
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    monkeypatch.setattr(hub_module, "CONFIGURATION_S", 0.1)
    return folder


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.02)


async def hub_of(running: RunningCentral) -> Hub:
    return await running.central.upstreams.hub()


async def test_the_last_one_ends_though_nobody_asks_for_tools_any_more(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"
        settings_of_user(user, {})
        await until(lambda: bool(events_in(log, "eof")))
        hub = await hub_of(running)
        await until(lambda: not hub.upstreams())


async def test_a_subscriber_does_not_keep_it(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("handshake") as client:
        assert "result" in await client.ask("resources/subscribe", {"uri": "scripted://one"})
        settings_of_user(user, {})
        await until(lambda: bool(events_in(log, "eof")))


async def test_one_in_use_ends_when_its_calls_have_their_answers_and_takes_no_others(
    tmp_path: Path, user: Path
) -> None:
    log = tmp_path / "log.jsonl"
    entry = scripted(log=str(log))
    settings_of_user(user, {"one": entry, "two": scripted()})
    async with running_central(tmp_path, QUICK) as running:
        hub, caller = await hub_of(running), Caller(session="s", root=tmp_path)
        spec = hub.of(tmp_path).specs["one"]
        answers: list[dict[str, Any]] = []

        async def answer(_method: str, _params: Any) -> dict[str, Any]:
            settings_of_user(user, {"two": scripted()})
            await until(lambda: "one" not in hub.of(tmp_path).specs)
            with pytest.raises(UpstreamUnavailable, match="its entry was changed, disabled or removed"):
                await hub.call(spec, "echo", {"text": "x"}, caller)
            for _ in range(20):  # the round that ends it has its turn
                await anyio.sleep(0.02)
            return {"action": "accept", "content": {"name": "ann"}}

        asked = Caller(session="s", root=tmp_path, ask=answer)
        answers.append(await hub.call(spec, "elicit", {"text": "who?"}, asked))
        assert json.loads(text_of(answers[0]))["content"] == {"name": "ann"}
        await until(lambda: bool(events_in(log, "eof")))
        await until(lambda: hub.state("one") is None)
        settings_of_user(user, {"one": entry, "two": scripted()})
        await until(lambda: "one" in hub.of(tmp_path).specs)
        assert text_of(await hub.call(spec, "echo", {"text": "x"}, caller)) == "x"
    assert len(events_in(log, "started")) == 2


async def test_one_that_starts_is_ended_and_who_waits_for_it_is_refused(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), never_initialize=True)})
    async with running_central(tmp_path, QUICK | {"hub.start_timeout_s": 600}) as running:
        hub, caller = await hub_of(running), Caller(session="s", root=tmp_path)
        spec = hub.of(tmp_path).specs["one"]
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(UpstreamUnavailable, match="its entry was changed, disabled or removed"):
                    await hub.call(spec, "echo", {"text": "x"}, caller)

            tasks.start_soon(call)
            await until(lambda: bool(events_in(log, "started")))
            assert hub.state("one") is UpstreamState.STARTING
            settings_of_user(user, {})
        await until(lambda: bool(events_in(log, "eof")))
        await until(lambda: not hub.upstreams())


async def test_withdrawn_trust_ends_what_a_repository_has_started(tmp_path: Path, user: Path) -> None:
    root, log = tmp_path / "shop", tmp_path / "log.jsonl"
    (root / ".git").mkdir(parents=True)
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": scripted(log=str(log))}}))
    settings_of_user(user, {}, enableAllProjectMcpServers=True)
    async with (
        running_central(tmp_path, QUICK | {"trusted_roots": []}) as running,
        running.raw("modern", x_serena_project=str(root)) as client,
    ):
        trust = running.central.trust
        trust.approve(root, trust.standing(root).digest, by="a test")
        assert text_of(await client.call("own__echo", text="x")) == "x"
        trust.revoke(root)
        await until(lambda: bool(events_in(log, "eof")))
