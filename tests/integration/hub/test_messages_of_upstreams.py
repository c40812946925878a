"""Log messages and updates of resources, which upstreams send by themselves, reach the sessions that asked for them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from serena_central.hub import subscribers
from serena_central.hub.callers import Caller
from serena_central.hub.connection import MAX_QUESTION_BYTES, MAX_SENTENCE, MAX_TEXT, MOST_LOGGED
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import MODERN, Era, sdk_client, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

URI = "scripted://one"


class Listener:
    """A client that notes what it is sent."""

    def __init__(self, running: RunningCentral, name: str, era: Era, level: Any = None) -> None:
        self.logged: list[tuple[str, Any, str | None]] = []
        self.updated: list[str] = []
        self._running = running
        self._name = name
        self._era: Era = era
        self._level = level
        self.news = anyio.Event()

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data, params.logger))

    async def _message(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))
            self.news.set()

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client]:
        headers = self._running.authorized | {"x-serena-session": self._name}
        async with sdk_client(
            self._running.url,
            self._era,
            headers,
            logging_callback=self._log,
            message_handler=self._message,
            **({"log_level": self._level} if self._era == "modern" else {}),
        ) as client:
            if self._era == "handshake" and self._level:
                await client.set_logging_level(self._level)
            yield client

    def of_upstream(self) -> list[tuple[str, Any]]:
        return [(level, data) for level, data, logger in self.logged if logger == "one"]


@pytest.mark.parametrize("modern_only", [False, True])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_each_session_gets_the_log_messages_of_its_own_calls_at_its_own_level(
    tmp_path: Path, user: Path, era: Era, *, modern_only: bool
) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), modern_only=modern_only)})
    async with running_central(tmp_path, QUICK) as running:
        verbose, terse, deaf = (
            Listener(running, name, era, level) for name, level in (("v", "debug"), ("t", "error"), ("d", None))
        )
        async with terse.connected() as t, verbose.connected() as v, deaf.connected() as d:
            for client, text in ((t, "1"), (v, "2"), (t, "3"), (d, "4")):
                await client.call_tool("one__log", {"text": text})
        assert terse.of_upstream() == [("error", "1"), ("error", "3")]
        assert verbose.of_upstream() == [("debug", "2"), ("info", "2"), ("error", "2")]
        assert deaf.of_upstream() == []
    levels = [one["read"]["params"]["level"] for one in events_in(log, "logging/setLevel")]
    assert levels == ([] if modern_only else ["error", "debug"])
    assert len(events_in(log, "started")) == 1


async def test_no_more_than_some_log_messages_wait_for_a_client_that_does_not_read(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    taken: list[Any] = []
    reads = anyio.Event()

    async def log(_level: str, data: Any, _logger: str) -> None:
        taken.append(data)
        await reads.wait()

    async with running_central(tmp_path, QUICK) as running:
        hub, caller = await running.central.upstreams.hub(), Caller(session="s", root=tmp_path, log=log)
        spec = hub.of(tmp_path).specs["one"]
        await hub.call(spec, "chatter", {"text": str(3 * MOST_LOGGED)}, caller)
        assert taken == [*range(MOST_LOGGED)]
        reads.set()
        await hub.call(spec, "chatter", {"text": "1"}, caller)
        assert taken[MOST_LOGGED:] == [0]


async def test_what_an_upstream_says_during_a_call_is_bounded(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    logged: list[Any] = []
    steps: list[str] = []

    async def log(_level: str, data: Any, _logger: str) -> None:
        logged.append(data)

    async def ask(_method: str, _params: object) -> dict[str, Any]:
        raise AssertionError

    async with running_central(tmp_path, QUICK) as running:
        caller = Caller(
            session="s", root=tmp_path, log=log, ask=ask, progress=lambda message, _part: steps.append(message)
        )
        hub = await running.central.upstreams.hub()
        spec = hub.of(tmp_path).specs["one"]
        text = "x" * (MAX_QUESTION_BYTES + 1)
        await hub.call(spec, "log", {"text": text}, caller)
        assert logged == ['"' + "x" * (MAX_TEXT - 1) + "…"]
        await hub.call(spec, "progress", {"text": text}, caller)
        assert steps == ["x" * MAX_SENTENCE] * 3
        assert "the limit is 4000000" in str(await hub.call(spec, "ask", {"text": text}, caller))


async def test_a_level_reaches_upstreams_that_run_at_once(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("handshake") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"
        assert not events_in(log, "logging/setLevel")
        await client.ask("logging/setLevel", {"level": "info"})
        assert [one["read"]["params"]["level"] for one in events_in(log, "logging/setLevel")] == ["info"]


async def test_a_subscription_beyond_the_limit_is_refused(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribers, "MOST_URIS", 2)
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("handshake") as client:
        for number in (1, 2, 2):
            assert "result" in await client.ask("resources/subscribe", {"uri": f"scripted://n/{number}"})
        refused = await client.ask("resources/subscribe", {"uri": "scripted://n/3"})
        assert "2 resources of the MCP server 'one'" in refused["error"]["message"]
        await client.ask("resources/unsubscribe", {"uri": "scripted://n/1"})
        assert "result" in await client.ask("resources/subscribe", {"uri": "scripted://n/3"})
    sent = [one["read"]["params"]["uri"] for one in events_in(log, "resources/subscribe")]
    assert sent[-1] == "scripted://n/3"
    assert sent.count("scripted://n/3") == 1


async def test_updates_of_a_resource_reach_the_sessions_that_subscribed(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running:
        ann, ben, eve = (Listener(running, name, "handshake") for name in ("ann", "ben", "eve"))
        async with ann.connected() as a, ben.connected() as b, eve.connected() as e:
            for client in (a, b, e):
                await client.list_resources()
            await a.subscribe_resource(URI)
            await b.subscribe_resource(URI)
            await e.subscribe_resource("scripted://two")
            await e.call_tool("one__touch", {"text": URI})
            with anyio.fail_after(30):
                await ann.news.wait()
                await ben.news.wait()
            await b.unsubscribe_resource(URI)
            await e.call_tool("one__boom", {"text": ""})  # it is started again, and subscribed to again
            ann.news = anyio.Event()
            with anyio.fail_after(30):
                while len(events_in(log, "resources/subscribe")) < 5:
                    await anyio.sleep(0.01)
                await e.call_tool("one__touch", {"text": URI})
                await ann.news.wait()
            with pytest.raises(MCPError, match="no such resource"):
                await a.subscribe_resource("scripted://refused")
            await a.unsubscribe_resource(URI)
            await e.unsubscribe_resource("scripted://two")
        assert ann.updated == [URI, URI]
        assert ben.updated == [URI]
        assert eve.updated == []
    gone = [one["read"]["params"]["uri"] for one in events_in(log, "resources/unsubscribe")]
    assert gone == [URI, "scripted://two"]


async def test_a_stream_of_the_modern_era_gets_updates_while_it_is_open(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running:
        headers = running.authorized | {"x-serena-session": "ann"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
            async with Client(transport, mode=MODERN) as client:
                async with client.listen(resource_subscriptions=[URI]) as events:
                    await client.call_tool("one__touch", {"text": URI})
                    with anyio.fail_after(30):
                        async for event in events:
                            assert str(event.uri) == URI
                            break
                with anyio.fail_after(30):
                    while not events_in(log, "resources/unsubscribe"):
                        await anyio.sleep(0.01)
