"""While a call waits, a client that gave a token hears every few seconds what for, and how far it is."""

import json
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from serena_central.app import Application
from serena_central.core.progress import Listener
from serena_central.files import corpus
from serena_central.symbols.indexing.file_states import IndexProgress
from serena_central.tools import heartbeat
from serena_central.tools.heartbeat import standing
from serena_central.tools.tool_run import ToolReply, ToolRun
from tests.support.central import RunningCentral, running_central, running_parts, session_of
from tests.support.mcp import Era, sdk_client
from tests.support.scripted import REFERENCES, scripted_project, scripted_ty

BEAT = re.compile(r"^find_referencing_symbols: ty is answering textDocument/references.* \(\d+ s\)$")

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
    scripted_ty(tmp_path)
    scripted_project(tmp_path)
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(tmp_path / "shop")
        monkeypatch.setattr(type(project.indexer), "progress", IndexProgress(30, 90, 9.0))
        expected = "find_symbol: 'shop' is being indexed, 30 of 120 files, 9 files/s, 10 s left", 0.25
        assert standing("find_symbol", ToolReply(projects=[project])) == expected


async def heard_from(
    parts: Application, tool: str, arguments: dict[str, object], wanted: str, then: Callable[[], object]
) -> str:
    """The first sign of life of a call that says `wanted`; the call ends after `then`."""
    heard: list[str] = []
    found = anyio.Event()

    def hear(message: str, _part: float | None) -> None:
        heard.append(message)
        if wanted in message:
            found.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: parts.caller.call(session_of(parts), tool, arguments, on_progress=hear))
            await found.wait()
            then()
    return next(message for message in heard if wanted in message)


async def test_a_search_tells_how_many_files_it_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    for number in range(5):
        (root / f"note{number}.txt").write_text("hello\n")
    real, go_on = corpus._read, threading.Event()

    def slow(file: str, *rest: object) -> bytes | None:
        if file.endswith("note3.txt"):
            go_on.wait(20)
        return real(file, *rest)

    monkeypatch.setattr(corpus, "_read", slow)
    async with running_parts(tmp_path) as parts:
        arguments = {"substring_pattern": "hello", "relative_path": "", "project": str(root)}
        said = await heard_from(parts, "search_for_pattern", arguments, "files searched", go_on.set)
    assert re.search(r"search_for_pattern: \d+ of \d+ files searched \(\d+ s\)$", said)


async def test_an_edit_tells_that_others_are_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    async with running_parts(tmp_path) as parts:
        project = await parts.projects.open(root)
        arguments = {"relative_path": "cart.py", "needle": "class", "repl": "class", "mode": "literal"}
        release = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def hold(*, task_status: anyio.abc.TaskStatus[None]) -> None:
                async with project.edits._queue.turn(["cart.py"]):
                    task_status.started()
                    await release.wait()

            await tasks.start(hold)
            said = await heard_from(
                parts, "replace_content", arguments | {"project": str(root)}, "ahead at 'cart.py'", release.set
            )
    assert "replace_content: 1 ahead at 'cart.py'" in said


async def test_several_projects_tell_which_have_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    scripted_ty(tmp_path)
    slow = scripted_project(tmp_path)
    quick = tmp_path / "quick"
    quick.mkdir()
    (quick / "note.txt").write_text("hello\n")
    (slow / "note3.txt").write_text("hello\n")
    real, go_on = corpus._read, threading.Event()

    def blocked(file: str, *rest: object) -> bytes | None:
        if file.endswith("note3.txt"):
            go_on.wait(20)
        return real(file, *rest)

    monkeypatch.setattr(corpus, "_read", blocked)
    async with running_parts(tmp_path) as parts:
        arguments = {"substring_pattern": "hello", "project": [str(slow), str(quick)]}
        said = await heard_from(parts, "search_for_pattern", arguments, "1 of 2 projects", go_on.set)
    assert "1 of 2 projects answered, not yet 'shop'; " in said


async def test_a_call_tells_which_hook_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    go_on = tmp_path / "go-on"
    command = f"until [ -e {go_on} ]; do sleep 0.05; done"
    hooks = {"PreToolUse": [{"matcher": "read_file", "hooks": [{"type": "command", "command": command}]}]}
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    async with running_parts(tmp_path) as parts:
        arguments = {"relative_path": "cart.py", "project": str(root)}
        said = await heard_from(parts, "read_file", arguments, "PreToolUse", go_on.touch)
    assert said.startswith("read_file: 1 PreToolUse hook (")


async def test_no_beat_takes_the_place_of_news_that_come_at_the_end_of_the_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.01)
    heard: list[str] = []
    async with running_parts(tmp_path) as parts:
        began = anyio.current_time()
        run = ToolRun(id="c-1", tool="wait", session=session_of(parts), began=began)

        async def work(report: Listener) -> None:
            await anyio.sleep(0.001)  # the silence has begun
            heard.clear()
            time.sleep(0.05)  # noqa: ASYNC251 (the loop is kept from noticing its end)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()  # now it has noticed, and the beat has not come yet
            report("news", None)
            await anyio.lowlevel.checkpoint()

        await heartbeat.with_heartbeat(run, ToolReply(), lambda message, _part: heard.append(message), work)
    assert heard == ["news"]
