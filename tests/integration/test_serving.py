"""The whole server from start to stop: what survives a restart, and how a stop treats those who are connected."""

import dataclasses
import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import application as application_module
from serena_central.app import serving as serving_module
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.families import CATALOGUE
from tests.support.central import running_central
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio


async def until(condition: Any) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.01)


@pytest.fixture
def release() -> anyio.Event:
    return anyio.Event()


@pytest.fixture
def held_tools(release: anyio.Event) -> Catalogue:
    """In which list_projects waits for the event, as a tool waits for a slow language server."""
    real = CATALOGUE.get("list_projects")
    assert real is not None

    async def held(*_arguments: Any, **_named: Any) -> str:
        await release.wait()
        return "answered"

    return CATALOGUE.replacing(dataclasses.replace(real, function=held))


async def test_sessions_survive_a_restart_with_their_project_and_their_kill(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    async with (
        running_central(tmp_path) as before,
        before.raw("handshake") as client,
        before.raw("handshake") as victim,
    ):
        session_id, victim_id = client.session_id, victim.session_id
        await client.call("activate_project", project=str(project))
        await victim.http.delete(f"/api/v1/sessions/{victim_id}", params={"by": "ann"})
    async with running_central(tmp_path) as after, after.http() as http:
        client = RawClient(http, "handshake")
        client.session_id = session_id
        config = json.loads(text_of(await client.call("get_current_config")))
        assert config["session"] == session_id
        assert config["active_project"] == {"name": "shop", "root": str(project)}
        client.session_id = victim_id
        refused = await client.send("tools/list")
        assert refused.status_code == 403
        assert "terminated by ann" in refused.json()["error"]["message"]
        assert (await http.get(f"/api/v1/sessions/{victim_id}")).json()["terminated_by"] == "ann"


async def test_a_client_that_said_goodbye_is_not_taken_back(tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        headers = client.headers("", {})
        assert (await client.http.delete("/mcp", headers=headers)).is_success
        late = await client.http.post(
            "/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}
        )
        assert late.status_code == 404


async def test_what_a_new_session_is_told_of_tools_fits_into_30_kb(tmp_path: Path) -> None:
    async with (
        running_central(tmp_path) as central,
        central.raw("handshake") as older,
        central.raw("modern") as modern,
    ):
        for client in (older, modern):
            answer = await client.send("tools/list")
            assert "find_symbol" in answer.text
            assert len(answer.content) <= 30_000


async def test_a_stop_ends_open_streams_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_module, "CALLS_END_S", 1000)
    monkeypatch.setattr(serving_module, "STOP_S", 1000)
    async with (
        running_central(tmp_path) as central,
        central.raw("handshake") as client,
        client.http.stream("GET", "/mcp", headers=client.headers("", {})) as stream,
    ):
        central.server.should_exit = True
        with anyio.fail_after(60):
            async for _ in stream.aiter_bytes():
                pass


async def test_a_stop_lets_running_calls_finish(tmp_path: Path, held_tools: Catalogue, release: anyio.Event) -> None:
    async with running_central(tmp_path, catalogue=held_tools) as central, central.raw("handshake") as client:
        answers: list[dict[str, Any]] = []

        async def call() -> None:
            answers.append(await client.call("list_projects"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(lambda: any(session.running for session in central.central.sessions.sessions()))
            central.server.handle_exit(signal.SIGTERM, None)
            await until(lambda: not central.server.servers[0].is_serving())
            release.set()
        central.server._captured_signals.clear()
    assert text_of(answers[0]) == "answered"


async def test_a_stop_answers_calls_that_take_too_long(
    tmp_path: Path, held_tools: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application_module, "CALLS_END_S", 0.3)
    async with running_central(tmp_path, catalogue=held_tools) as central:
        results: dict[str, Any] = {}

        async def call(era: Any) -> None:
            async with central.raw(era, x_serena_session=era) as client:
                results[era] = await client.call("list_projects")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "handshake")
            tasks.start_soon(call, "modern")
            await until(lambda: sum(len(one.running) for one in central.central.sessions.sessions()) == 2)
            central.server.should_exit = True
    for result in results.values():
        assert result["isError"]
        assert "stopping" in text_of(result)
    assert set(results) == {"handshake", "modern"}


async def test_hanging_up_on_the_api_cancels_the_call(tmp_path: Path, held_tools: Catalogue) -> None:
    async with running_central(tmp_path, catalogue=held_tools) as central, central.http() as http:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.post, "/api/v1/tools/list_projects")
            await until(lambda: any(session.running for session in central.central.sessions.sessions()))
            tasks.cancel_scope.cancel()
        await until(lambda: not any(session.running for session in central.central.sessions.sessions()))
