"""While a call waits, a client that gave a token hears every few seconds what for, and how far it is."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from serena_central.tools import heartbeat
from serena_central.tools.heartbeat import standing
from tests.support.central import RunningCentral, running_central, running_parts, session_of
from tests.support.mcp import Era, sdk_client
from tests.support.scripted import REFERENCES, scripted_project, scripted_ty

BEAT = re.compile(r"^find_referencing_symbols is running on 'shop'.* \(\d+ s\)$")

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    scripted_ty(tmp_path)
    scripted_project(tmp_path, hang_on=[REFERENCES])
    async with running_central(tmp_path) as running:
        yield running


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_waiting_call_shows_that_it_lives(
    central: RunningCentral, tmp_path: Path, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    heard: list[tuple[float, str]] = []
    enough = anyio.Event()

    async def hear(value: float, _total: float | None, message: str | None) -> None:
        heard.append((value, message or ""))
        if sum(BEAT.search(said) is not None for _, said in heard) >= 2:
            enough.set()

    arguments = {"name_path": "Cart/total", "project": str(tmp_path / "shop")}
    with anyio.fail_after(60):
        async with (
            sdk_client(central.url, era, central.authorized | {"x-serena-session": "one"}) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: client.call_tool("find_referencing_symbols", arguments, progress_callback=hear))
            await enough.wait()
            tasks.cancel_scope.cancel()
    values = [value for value, _ in heard]
    assert values == sorted(set(values))


async def test_a_beat_tells_how_many_files_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting:
        indexed, waiting, seconds_left = 30, 90, None

    scripted_ty(tmp_path)
    scripted_project(tmp_path)
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(tmp_path / "shop")
        monkeypatch.setattr(type(project.indexer), "progress", Waiting())
        calls = []

        async def keep(call: object, *_: object) -> object:
            calls.append(call)
            raise LookupError

        monkeypatch.setattr(central.caller, "_call", lambda _tool, call, *_: keep(call))
        with pytest.raises(LookupError):
            await central.caller.call(session_of(central), "find_symbol", {}, on_progress=lambda *_: None)
        (call,) = calls
        call.projects = [project]
        assert standing(call) == ("find_symbol: 'shop' is being indexed, 30 of 120 files", 0.25)
