"""Every call ends in one of five ways, each is recorded, and one project's trouble is no other's."""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from serena_central.app import Application
from serena_central.core.errors import (
    CallCancelled,
    DeadlineExceeded,
    InvalidArguments,
    SessionTerminated,
    ToolRefused,
    UnknownProject,
    UnknownTool,
)
from serena_central.projects.project import Project
from serena_central.projects.registry import KnownProject
from serena_central.sessions.session import Session
from serena_central.tools.catalogue import Catalogue, tool, tools_in
from serena_central.tools.context import ToolCall
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

began = anyio.Event()


@tool("Tell")
async def tell(call: ToolCall, target: Project) -> str:
    """Tells the project's name."""
    call.note("looked closely")
    return target.name


@tool("Try")
async def attempt(call: ToolCall, target: Project) -> str:
    """Does what the project's name says."""
    match target.name:
        case "refuses":
            raise ToolRefused("not here")
        case "breaks":
            raise ValueError("a secret")
        case "hangs":
            await anyio.sleep_forever()
        case "refuses in a task":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_refuse)
        case _:
            pass
    return target.name


async def _refuse() -> None:
    raise ToolRefused("not there")


@tool("Wait")
async def wait(call: ToolCall) -> None:
    """Waits for ever."""
    began.set()
    await anyio.sleep_forever()


@tool("Edit", edits=True)
async def edit(call: ToolCall) -> str:
    """Counts as an edit."""
    return "edited"


@pytest.fixture(autouse=True)
def fresh_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "began", anyio.Event())


@asynccontextmanager
async def central_in(folder: Path, **settings: Any) -> AsyncGenerator[Application]:
    with anyio.fail_after(60):
        async with running_parts(folder, settings, catalogue=Catalogue(tools_in(sys.modules[__name__]))) as central:
            yield central


def project(folder: Path, name: str, settings: str = "") -> str:
    (folder / name / ".serena").mkdir(parents=True)
    (folder / name / ".serena" / "project.yml").write_text(settings)
    return str(folder / name)


def endings(central: Application) -> list[tuple[str, str]]:
    finished = [event for event in central.bus.recent() if event.kind == "call.finished"]
    return [(event.data["tool"], event.data["outcome"]) for event in finished]


async def test_an_answer_is_counted_and_published(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session = session_of(central)
        answer = await central.caller.call(session, "tell", {"project": project(tmp_path, "app")})
        assert answer.blocks == ["app", "looked closely"]
        assert endings(central) == [("tell", "ok")]
        assert (session.calls, session.errors, session.running) == (1, 0, {})


async def test_each_call_of_a_session_keeps_its_projects_language_servers(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session, app = session_of(central, explicit_id="window"), project(tmp_path, "app")
        kept: list[float | None] = []
        for _ in range(2):
            await central.caller.call(session, "tell", {"project": app})
            kept.append(central.pool._interests.idle_clock_start(Path(app)))
        first, second = kept
        assert first is not None
        assert second is not None
        assert second > first


async def test_what_a_tools_task_fails_of_is_told_like_its_own_failure(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        with pytest.raises(ToolRefused, match="not there"):
            await central.caller.call(
                session_of(central), "attempt", {"project": project(tmp_path, "refuses in a task")}
            )


async def test_a_refused_call_is_recorded_too(tmp_path: Path) -> None:
    async with central_in(tmp_path, excluded_tools=["tell"], read_only=True) as central:
        session = session_of(central)
        with pytest.raises(ToolRefused, match="excluded_tools"):
            await central.caller.call(session, "tell", {})
        with pytest.raises(ToolRefused, match="read_only"):
            await central.caller.call(session, "edit", {})
        with pytest.raises(InvalidArguments):
            await central.caller.call(session, "attempt", {"colour": "red"})
        with pytest.raises(UnknownProject):
            await central.caller.call(session, "attempt", {})
        assert endings(central) == [("tell", "error"), ("edit", "error"), ("attempt", "error"), ("attempt", "error")]
        assert (session.calls, session.errors) == (4, 4)
        assert [tool.name for tool in central.caller.tools_for(session)] == ["attempt", "wait"]


async def test_a_project_refuses_what_its_own_settings_forbid(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        root = project(tmp_path, "app", "excluded_tools: [tell]")
        with pytest.raises(ToolRefused, match="excluded_tools"):
            await central.caller.call(session_of(central), "tell", {"project": root})


async def test_what_is_wrong_in_a_projects_settings_is_noted_once_in_a_session(tmp_path: Path) -> None:
    settings = "encoding: utf-88\nlanguages: [pyhton]\nexclude_tools: []\nweb_dashboard: true\n"
    async with central_in(tmp_path) as central:
        root, session = project(tmp_path, "app", settings), session_of(central)
        notes = (await central.caller.call(session, "tell", {"project": root})).blocks[1]
        file = f"{root}/.serena/project.yml"
        assert f"Settings: {file}:1: encoding: must be the name of an encoding of texts" in notes
        assert f"Settings: {file}:2: languages: 'pyhton' is not a known language. Did you mean python?" in notes
        assert f"Settings: {file}:3: exclude_tools: is not a known setting; did you mean excluded_tools?" in notes
        assert "web_dashboard" not in notes  # Serena's
        assert "Settings:" not in (await central.caller.call(session, "tell", {"project": root})).blocks[1]
        Path(file).write_text("encoding: idna\n")
        notes = (await central.caller.call(session, "tell", {"project": root})).blocks[1]
        assert f"Settings: {file}:1: encoding: must be the name of an encoding of texts" in notes


async def test_an_unknown_tool_names_what_is_close(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        with pytest.raises(UnknownTool, match="Did you mean tell"):
            await central.caller.call(session_of(central), "tel", {})


async def test_a_call_that_takes_too_long_ends_at_its_deadline(tmp_path: Path) -> None:
    async with central_in(tmp_path, tool_timeout_s=1) as central:
        with pytest.raises(DeadlineExceeded, match="wait"):
            await central.caller.call(session_of(central), "wait", {})
        assert endings(central) == [("wait", "deadline")]


async def test_a_client_that_leaves_cancels_its_call(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central, anyio.create_task_group() as tasks:
        session = session_of(central)
        tasks.start_soon(central.caller.call, session, "wait", {})
        await began.wait()
        assert [running.tool for running in session.running.values()] == ["wait"]
        tasks.cancel_scope.cancel()
    assert endings(central) == [("wait", "cancelled")]
    assert session.running == {}


async def test_a_person_who_kills_the_session_ends_its_calls(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session = session_of(central)
        told: list[str] = []

        async def calling() -> None:
            with pytest.raises(CallCancelled) as caught:
                await central.caller.call(session, "wait", {})
            told.append(str(caught.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calling)
            await began.wait()
            central.sessions.terminate(session.id, "Ada")
        assert "Ada" in told[0]
        assert endings(central) == [("wait", "cancelled")]
        with pytest.raises(SessionTerminated):
            await central.caller.call(session, "tell", {})


async def test_a_call_that_its_client_cancels_stays_cancelled_whoever_cancels_it_then(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session = session_of(central)
        with anyio.CancelScope() as clients:

            async def cancelling() -> None:
                await began.wait()
                clients.cancel()
                for running in session.running.values():
                    running.cancel("Ada has no time.")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancelling)
                await central.caller.call(session, "wait", {})
        assert clients.cancelled_caught
        assert endings(central) == [("wait", "cancelled")]


class Reply:
    """A reply that waits for its call, and notes what is for afterwards."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.later: list[Callable[[], None]] = []
        self.answered: str | None = None

    def afterwards(self, function: Callable[[], None]) -> None:
        self.later.append(function)

    async def wait_for(self, central: Application, session: Session, tool: str, **arguments: Any) -> None:
        with self.scope:
            try:
                answer = await central.caller.call(session, tool, arguments, waiting=self)
            except CallCancelled as error:
                self.answered = str(error)
            else:
                self.answered = answer.blocks[0]


async def test_a_call_whose_reply_waits_for_it_is_counted_and_recorded_afterwards(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session, reply = session_of(central), Reply()
        await reply.wait_for(central, session, "tell", project=project(tmp_path, "app"))
        assert reply.answered == "app"
        assert session.running == {}
        assert (session.calls, endings(central)) == (0, [])
        (record,) = reply.later
        record()
        assert (session.calls, endings(central)) == (1, [("tell", "ok")])


async def test_a_person_who_cancels_a_call_has_its_reply_say_so_and_its_task_goes_on(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session, reply = session_of(central), Reply()

        async def calling() -> None:
            await reply.wait_for(central, session, "wait")
            await anyio.lowlevel.checkpoint()  # nothing of the cancellation is left
            for record in reply.later:
                record()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calling)
            await began.wait()
            for running in session.running.values():
                running.cancel("Ada has no time.")
        assert reply.answered == "Ada has no time."
        assert endings(central) == [("wait", "cancelled")]


async def test_a_client_that_cancels_a_call_gets_no_reply_whoever_cancels_it_then(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session, reply = session_of(central), Reply()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(reply.wait_for, central, session, "wait"))
            await began.wait()
            reply.scope.cancel()
            for running in session.running.values():
                running.cancel("Ada has no time.")
        assert reply.answered is None
        assert len(reply.later) == 1


async def test_one_projects_trouble_spoils_no_others_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with central_in(tmp_path) as central:
        hangs = project(tmp_path, "hangs", "tool_timeout_s: 1")
        names = [project(tmp_path, name) for name in ("works", "refuses", "breaks")]
        central.projects.remember(KnownProject("gone", str(tmp_path / "gone")))
        asked = [*names, hangs, "gone"]
        answer = await central.caller.call(session_of(central), "attempt", {"project": asked})
        groups = json.loads(answer.blocks[0])
        assert groups["works"] == "works"
        assert groups["refuses"] == {"error": "not here"}
        assert "a secret" not in groups["breaks"]["error"]
        assert "1 s" in groups["hangs"]["error"]
        assert "no project" in groups["gone"]["error"]
        assert "a secret" in caplog.text


async def test_notes_of_several_projects_name_theirs(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session = session_of(central)
        for name in ("one", "two"):
            await central.caller.call(session, "tell", {"project": project(tmp_path, name)})
        answer = await central.caller.call(session, "tell", {"project": "*"})
        assert json.loads(answer.blocks[0]) == {"one": "one", "two": "two"}
        assert answer.blocks[1].splitlines() == ["'one': looked closely", "'two': looked closely"]


async def test_projects_of_one_name_are_grouped_by_root(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        roots = [project(tmp_path / parent, "app") for parent in ("a", "b")]
        answer = await central.caller.call(session_of(central), "tell", {"project": roots})
        assert json.loads(answer.blocks[0]) == dict.fromkeys(roots, "app")
