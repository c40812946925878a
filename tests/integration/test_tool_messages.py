"""A run that travels as a message, and its reply, come to the same as one that is passed as it is: for every tool."""

import re
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from serena_central.app import Application
from serena_central.cluster.error_data import error_data, error_of
from serena_central.cluster.host import RunServer
from serena_central.cluster.messages import VERSION, decode_reply, encode_run, failure_of
from serena_central.cluster.remote_host import RemoteHost
from serena_central.cluster.remote_session import CarriedUsers, RecordedViews
from serena_central.core import errors, progress
from serena_central.core.client_channel import client_channel
from serena_central.core.errors import ClusterError, SerenaCentralError
from serena_central.projects.project import Project
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller
from serena_central.tools.catalogue import Catalogue, tool, tool_of
from serena_central.tools.context import Services, ToolCall
from serena_central.tools.families import CATALOGUE
from serena_central.tools.idempotency import Idempotency
from serena_central.tools.tool_run import ToolRun
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

SHOP = '''"""Carts."""


class Cart:
    """What is bought."""

    def total(self) -> int:
        return helper()

    def unused(self) -> int:
        return 2


class Basket(Cart):
    def total(self) -> int:
        return 3


def helper() -> int:
    return 1


def bill() -> int:
    return Cart().total()
'''

BODY = "def helper() -> int:\n    return 10\n"

CALLS: Mapping[str, Mapping[str, Any]] = {
    "get_symbols_overview": {"relative_path": "cart.py"},
    "find_symbol": {"name_path_pattern": "Cart", "include_body": True, "depth": 1},
    "find_implementations": {"name_path": "Cart/total", "relative_path": "cart.py"},
    "find_declaration": {"relative_path": "cart.py", "regex": "return (helper)"},
    "get_symbol_context": {"name_path": "helper", "relative_path": "cart.py"},
    "get_diagnostics_for_file": {"relative_path": "wrong.py"},
    "get_diagnostics_for_symbol": {"name_path": "helper", "reference_file": "cart.py"},
    "find_file": {"file_mask": "*.py", "relative_path": "."},
    "list_dir": {"relative_path": ".", "recursive": True},
    "read_file": {"relative_path": "cart.py"},
    "search_for_pattern": {"substring_pattern": "helper"},
    "get_call_hierarchy": {"name_path": "helper", "relative_path": "cart.py"},
    "get_type_hierarchy": {"name_path": "Cart", "relative_path": "cart.py"},
    "write_memory": {"memory_name": "one", "content": "first"},
    "read_memory": {"memory_name": "known"},
    "delete_memory": {"memory_name": "known"},
    "rename_memory": {"old_name": "known", "new_name": "other"},
    "edit_memory": {"memory_name": "known", "needle": "a", "repl": "b", "mode": "literal"},
    "find_referencing_symbols": {"name_path": "helper", "relative_path": "cart.py"},
    "execute_shell_command": {"command": "echo said"},
    "replace_symbol_body": {"name_path": "helper", "relative_path": "cart.py", "body": BODY},
    "insert_after_symbol": {"name_path": "helper", "relative_path": "cart.py", "body": "\n\nLATER = 1\n"},
    "insert_before_symbol": {"name_path": "helper", "relative_path": "cart.py", "body": "EARLIER = 1\n\n\n"},
    "rename_symbol": {"name_path": "helper", "relative_path": "cart.py", "new_name": "assistant"},
    "safe_delete_symbol": {"name_path_pattern": "Cart/unused", "relative_path": "cart.py"},
    "replace_content": {"relative_path": "cart.py", "needle": "return 1", "repl": "return 7", "mode": "literal"},
    "create_text_file": {"relative_path": "new.py", "content": "A = 1\n"},
    "delete_lines": {"relative_path": "cart.py", "start_line": 0, "end_line": 0},
    "replace_lines": {"relative_path": "cart.py", "start_line": 0, "end_line": 0, "content": '"""Other."""\n'},
    "insert_at_line": {"relative_path": "cart.py", "line": 1, "content": "\n"},
    "replace_in_files": {"needle": "helper", "repl": "assistant", "mode": "literal", "relative_path": "."},
}
"""Arguments by tool; the others take none."""

BEFORE: list[tuple[str, Mapping[str, Any]]] = [
    ("get_symbols_overview", {"relative_path": "cart.py"}),  # so that its symbols are known when its text is shown
    ("read_file", {"relative_path": "cart.py"}),
    ("read_memory", {"memory_name": "known"}),
]
"""What each session has called before."""

CHANGING = re.compile(r"\b[0-9a-f]{12}\b|\be-[\w-]+|\d+(\.\d+)? ?m?s\b|\"duration[^,}]*|\d{4}-\d\d-\d\d[T ][\d:.]+Z?")
"""Ids, marks of frames and times."""


@tool("Count")
async def count_to_two(call: ToolCall, target: Project) -> str:
    """Reports progress."""
    progress.report("one", 0.5)
    progress.report("two", 1.0)
    return "counted"


@dataclass
class Memory:
    """A wire that is none: bytes from one function to another."""

    server: RunServer
    heard: list[str]

    async def send(
        self, call: str, message: bytes, take: Callable[[bytes], None], on_progress: progress.Listener | None
    ) -> None:
        def hear(text: str, part: float | None) -> None:
            self.heard.append(text)
            if on_progress is not None:
                on_progress(text, part)

        reply = await self.server.run(message, hear)
        take(reply.message)
        reply.settle(True)
        await anyio.lowlevel.checkpoint()  # a cancelled wait is


@dataclass
class Both:
    """A server, and a second way to its tools."""

    parts: Application
    far: ToolCaller
    wire: Memory

    async def outcome(self, far: bool, session: Session, tool: str, arguments: Mapping[str, Any]) -> Any:
        caller = self.far if far else self.parts.caller
        try:
            answer = await caller.call(session, tool, arguments)
        except SerenaCentralError as error:
            return type(error), CHANGING.sub("…", str(error)), sorted(vars(error))
        return [CHANGING.sub("…", block) for block in answer.blocks], answer.shortened, answer.data is None


def two_ways(parts: Application) -> Both:
    services = Services(**{field.name: getattr(parts, field.name) for field in fields(Services)})
    remote = replace(services, views=RecordedViews(parts.store), users=CarriedUsers())
    wire = Memory(RunServer(remote, Idempotency()), [])
    host = RemoteHost(wire, services=services)
    idempotency = Idempotency()
    idempotency.expect({}, complete=True)
    return Both(
        parts, ToolCaller(services, record=lambda _row: None, idempotency=idempotency, host=lambda _local: host), wire
    )


@pytest.fixture(scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Both]:
    folder = tmp_path_factory.mktemp("messages")
    counting = tool_of(count_to_two)
    assert counting is not None
    catalogue = Catalogue([*CATALOGUE, counting])
    optional = [one.name for one in CATALOGUE if one.shown == "optional" and not one.needs]
    settings = {"execute_shell": True, "edit_diagnostics_s": 0, "included_optional_tools": optional}
    async with running_parts(folder, settings, catalogue=catalogue) as parts:
        yield two_ways(parts)


def laid_out(root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text(SHOP)
    (root / "wrong.py").write_text("x: int = 'a'\n")
    memories = root / ".serena" / "memories"
    memories.mkdir(parents=True)
    (memories / "known.md").write_text("a text\n")
    return root


def state(session: Session) -> dict[str, Any]:
    """What a session is left with, without what differs by design."""
    return {
        "views": dict(session.views),
        "memories": session.memories_seen,
        "pythons": session.pythons_noted,
        "dependencies": session.dependencies_noted,
        "restrictions": session.restrictions_noted,
        "told": session.held_back_told,
        "edits": session.edits,
        "errors": session.errors,
        "active": session.active_project,
        "worked_on": session.worked_on,
    }


@pytest.mark.parametrize("name", ["activate_project", *(one.name for one in CATALOGUE if one.on_project)])
async def test_a_run_by_message_comes_to_the_same(
    both: Both, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "shop"
    outcomes: list[Any] = []
    with anyio.fail_after(60):
        for far in (False, True):
            both.parts.projects.forget(laid_out(root))
            session = session_of(both.parts, explicit_id=f"{name}-{far}")
            named = {"project": str(root)}
            for read, arguments in BEFORE:
                await both.outcome(far, session, read, named | dict(arguments))
            outcome = await both.outcome(far, session, name, named | dict(CALLS.get(name, {})))
            files = {path.relative_to(root): path.read_text() for path in root.rglob("*") if path.is_file()}
            outcomes.append((outcome, files, state(session)))
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0][0][0], list), outcomes[0][0]


async def test_a_run_by_message_fails_with_the_same_error(both: Both, tmp_path: Path) -> None:
    named = {"project": str(laid_out(tmp_path / "shop"))}
    session = session_of(both.parts, explicit_id="failing")
    for name, arguments in [
        ("find_referencing_symbols", {"name_path": "nobody", "relative_path": "cart.py"}),
        ("read_file", {"relative_path": "../outside"}),
        ("replace_content", {"relative_path": "cart.py", "needle": "nowhere", "repl": "", "mode": "literal"}),
        ("read_memory", {"memory_name": "none"}),
        ("find_symbol", {"name_path_pattern": "Cart", "cursor": "nonsense"}),
    ]:
        near, far = [await both.outcome(way, session, name, named | arguments) for way in (False, True)]
        assert isinstance(near[0], type)
        assert near == far


async def test_a_conflict_is_found_by_what_the_message_says_the_session_saw(both: Both, tmp_path: Path) -> None:
    root = laid_out(tmp_path / "shop")
    session = session_of(both.parts, explicit_id="late")
    seen = {"project": str(root), "name_path_pattern": "helper", "include_body": True}
    await both.far.call(session, "find_symbol", seen)
    (root / "cart.py").write_text(SHOP.replace("return 1", "return 5"))
    edit = {"project": str(root), "name_path": "helper", "relative_path": "cart.py", "body": BODY}
    with pytest.raises(errors.EditConflict) as refused:
        await both.far.call(session, "replace_symbol_body", edit)
    assert refused.value.current is not None
    assert "return 5" in refused.value.current
    await both.far.call(session, "find_symbol", seen)
    await both.far.call(session, "replace_symbol_body", edit)
    assert "return 10" in (root / "cart.py").read_text()


async def test_a_grouped_answer_and_an_edit_of_several_projects_travel_as_one_message(
    both: Both, tmp_path: Path
) -> None:
    names = [str(laid_out(tmp_path / name)) for name in ("one", "two")]
    session = session_of(both.parts, explicit_id="grouped")
    arguments = {
        "project": names,
        "needle": "return 1\n",
        "repl": "return 8\n",
        "mode": "literal",
        "relative_path": "cart.py",
    }
    near, far = [
        await both.outcome(way, session, "search_for_pattern", {"project": names, "substring_pattern": "helper"})
        for way in (False, True)
    ]
    assert near == far
    await both.far.call(session, "replace_content", arguments)
    assert all("return 8" in (Path(name) / "cart.py").read_text() for name in names)


async def test_the_deadline_counts_from_when_the_call_came(both: Both, tmp_path: Path) -> None:
    found = CATALOGUE.get("find_symbol")
    assert found is not None
    session = session_of(both.parts, explicit_id="late")
    arguments = found.parse({"project": str(laid_out(tmp_path / "shop")), "name_path_pattern": "Cart"})
    now = anyio.current_time()
    run = ToolRun(id="c-1", tool=found.name, arguments=arguments, session=session, began=now - 10_000)
    replies: list[bytes] = []
    await both.wire.send(run.id, encode_run(found, run, now), replies.append, None)
    assert isinstance(failure_of(decode_reply(replies[0])), errors.DeadlineExceeded)


async def test_progress_comes_back_while_the_run_lasts(both: Both, tmp_path: Path) -> None:
    heard: list[tuple[str, float | None]] = []
    await both.far.call(
        session_of(both.parts, explicit_id="hearing"),
        "count_to_two",
        {"project": str(laid_out(tmp_path / "shop"))},
        on_progress=lambda text, part: heard.append((text, part)),
    )
    assert heard == [("one", 0.5), ("two", 1.0)]


async def test_a_cancelled_call_ends_the_run(both: Both, tmp_path: Path) -> None:
    root = laid_out(tmp_path / "shop")
    session = session_of(both.parts, explicit_id="cancelled")
    command = f"touch {root}/begun && sleep 60 && touch {root}/ended"
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                both.far.call, session, "execute_shell_command", {"project": str(root), "command": command}
            )
            while not (root / "begun").exists():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert session.running == {}
    assert not (root / "ended").exists()


def all_errors(kind: type[SerenaCentralError] = SerenaCentralError) -> list[type[SerenaCentralError]]:
    return [kind, *(one for below in kind.__subclasses__() for one in all_errors(below))]


@pytest.mark.parametrize(
    "error",
    [
        errors.EditConflict("f", "a.py", "somebody", "2026-01-01T00:00:00Z", "def f(): ...\n"),
        errors.JointEditRefused("one", errors.FileChanged("a.py"), ["one", "two"]),
        errors.AmbiguousSymbol("f", ["a.py: f", "b.py: f"]),
        errors.DeadlineExceeded("find_symbol", 1.5, "ty is starting"),
        errors.MemoryChanged("one", "text", "digest"),
        errors.HostFenced("/root", 1, 2),
        errors.ToolRefused("no"),
    ],
)
def test_an_error_travels_with_its_class_message_and_attributes(error: SerenaCentralError) -> None:
    back = error_of(error_data(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert [str(value) for value in vars(back).values()] == [str(value) for value in vars(error).values()]


async def test_messages_of_another_version_are_refused(both: Both) -> None:
    for message in (b"nonsense", msgspec.msgpack.encode({"version": VERSION + 1})):
        with pytest.raises(ClusterError):
            await both.wire.server.run(message, lambda _text, _part: None)
        with pytest.raises(ClusterError):
            decode_reply(message)


def test_no_tool_on_a_project_asks_its_client() -> None:
    """So the boundary carries no questions: those who ask run where the session is."""
    modules = {tool.function.__module__ for tool in CATALOGUE if tool.on_project}
    assert [name for name in modules if client_channel in vars(sys.modules[name]).values()] == []
