"""Edits of one file queue: first come, first served; none waits for a language server that the others wait for."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import anyio
import pytest
from anyio.lowlevel import checkpoint

from serena_central.app import Application
from serena_central.core.errors import EditConflict, EditNotInTime
from serena_central.editing.change import Author, FileChange
from serena_central.files.text import read_text
from serena_central.projects.editing.edits import Edited
from serena_central.projects.editing.joint_edits import jointly
from serena_central.projects.project import Project
from tests.support.central import running_parts, session_of
from tests.support.scripted import SYMBOLS, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

AUTHOR = Author(session="s", client="c", tool="t", call="c-1")


async def _insert(central: Application, root: Path, who: str, name: str) -> None:
    arguments = {"name_path": "Cart", "relative_path": "cart.py", "body": f"{name} = 0", "project": str(root)}
    await central.caller.call(session_of(central, explicit_id=who), "insert_after_symbol", arguments)


def _inserted(root: Path) -> list[str]:
    """Names in the order of their insertion: each one stands right after the class."""
    return re.findall(r"^(n\d+) = 0$", (root / "cart.py").read_text(), re.MULTILINE)[::-1]


async def test_edits_of_one_file_are_made_in_order_while_errors_are_waited_for(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)  # its server never says a word about errors
    names = [f"n{number}" for number in range(12)]
    planning, all_wait = anyio.Event(), anyio.Event()

    async def plan() -> list[FileChange]:
        planning.set()
        await all_wait.wait()
        return []

    async with running_parts(tmp_path, {"edit_diagnostics_s": 30}) as central:
        project = await central.projects.open(root)
        await project.find_one("Cart")
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(project.edits.change_files, ["cart.py"], plan, AUTHOR, dry_run=True))
                await planning.wait()
                for number, name in enumerate(names):
                    tasks.start_soon(_insert, central, root, f"s-{number}", name)
                    while project.edits.queued("cart.py") < number + 2:
                        await checkpoint()
                all_wait.set()
                while len(_inserted(root)) < len(names):
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
    assert _inserted(root) == names


async def test_an_edit_that_waits_too_long_says_its_place_and_changes_nothing(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    before = (root / "cart.py").read_text()
    settings = {"edit_diagnostics_s": 0, "tool_timeouts_s": {"insert_after_symbol": 3}}
    async with running_parts(tmp_path, settings) as central:
        project = await central.projects.open(root)
        planning = anyio.Event()

        async def plan() -> list[FileChange]:
            planning.set()
            await anyio.sleep_forever()
            return []

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(project.edits.change_files, ["cart.py"], plan, AUTHOR)
                await planning.wait()
                tasks.start_soon(project.edits.change_files, ["cart.py"], plan, AUTHOR)
                while project.edits.queued("cart.py") < 2:
                    await checkpoint()
                with pytest.raises(EditNotInTime, match=r"'cart.py' is being edited .* number 3 in the file's queue"):
                    await _insert(central, root, "s", "late")
                tasks.cancel_scope.cancel()
    assert (root / "cart.py").read_text() == before


class Pair(NamedTuple):
    """Two edits that change nothing: what makes the first one's plan last, and which were planned, in order."""

    planning: anyio.Event
    may_end: anyio.Event
    made: list[str]

    async def slow(self) -> list[FileChange]:
        self.planning.set()
        await self.may_end.wait()
        self.made.append("first")
        return []

    async def quick(self) -> list[FileChange]:
        self.made.append("second")
        return []


@pytest.fixture
def pair() -> Pair:
    return Pair(anyio.Event(), anyio.Event(), [])


async def test_a_file_has_one_queue_also_when_its_project_is_closed_and_opened_meanwhile(
    tmp_path: Path, pair: Pair
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "x.txt").write_text("one\n")
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                project = await central.projects.open(root)
                tasks.start_soon(project.edits.change_files, ["x.txt"], pair.slow, AUTHOR)
                await pair.planning.wait()
                central.projects.close(root, "test")
                project = await central.projects.open(root)
                tasks.start_soon(project.edits.change_files, ["x.txt"], pair.quick, AUTHOR)
                while not pair.made and project.edits.queued("x.txt") < 2:
                    await checkpoint()
                pair.may_end.set()
    assert pair.made == ["first", "second"]


async def test_a_file_has_one_queue_also_where_two_projects_have_it(tmp_path: Path, pair: Pair) -> None:
    root = tmp_path / "shop"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "x.txt").write_text("one\n")
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            outer, inner = await central.projects.open(root), await central.projects.open(root / "inner")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outer.edits.change_files, ["inner/x.txt"], pair.slow, AUTHOR)
                await pair.planning.wait()
                tasks.start_soon(inner.edits.change_files, ["x.txt"], pair.quick, AUTHOR)
                while not pair.made and inner.edits.queued("x.txt") < 2:
                    await checkpoint()
                pair.may_end.set()
    assert pair.made == ["first", "second"]


async def test_a_joint_edit_holds_no_file_while_it_waits_for_another(tmp_path: Path, pair: Pair) -> None:
    """Its second part waits for a file that an edit has which in turn waits for the first part's."""
    root = tmp_path / "shop"
    inner = root / "inner"
    inner.mkdir(parents=True)
    (root / "z.txt").write_text("one\n")
    (inner / "x.txt").write_text("one\n")

    def append(project: Project, path: str) -> Callable[[], Awaitable[Edited]]:
        return partial(project.edits.change_text, path, lambda read: f"{read.text.content}joint\n", AUTHOR)

    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            outer, within = await central.projects.open(root), await central.projects.open(inner)

            async def both() -> None:
                works = {root: append(outer, "z.txt"), inner: append(within, "x.txt")}
                done = await jointly(works, central.history.planned)
                assert [one.id for one in done.values() if isinstance(one, Edited)] == [mock.ANY, mock.ANY]
                pair.made.append("joint")

            async def long() -> list[FileChange]:
                await pair.slow()
                return [FileChange(root / "z.txt", read_text(root / "z.txt"), "long\n")]

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outer.edits.change_files, ["inner/x.txt"], long, AUTHOR)
                await pair.planning.wait()
                tasks.start_soon(both)
                while within.edits.queued("x.txt") < 2:
                    await checkpoint()
                pair.may_end.set()
    assert pair.made == ["first", "joint"]
    assert (root / "z.txt").read_text() == "long\njoint\n"
    assert (inner / "x.txt").read_text() == "one\njoint\n"


async def test_a_server_that_never_answers_delays_no_edit_of_another_project(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    stuck = scripted_project(tmp_path, "stuck", freeze_on=[SYMBOLS])
    sound = scripted_project(tmp_path, "sound")
    answered: list[str] = []
    async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:

        async def wait(number: int) -> None:
            session = session_of(central, explicit_id=f"stuck-{number}")
            arguments = {"name_path": "Cart/total", "relative_path": "cart.py", "project": str(stuck)}
            await central.caller.call(session, "find_referencing_symbols", arguments)
            answered.append("stuck")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(100):  # more than all threads
                    tasks.start_soon(wait, number)
                while sum(len(session.running) for session in central.sessions.sessions()) < 100:
                    await checkpoint()
                for number in range(20):
                    await _insert(central, sound, "sound", f"n{number}")
                assert not answered
                tasks.cancel_scope.cancel()
    assert len(_inserted(sound)) == 20


async def test_edits_of_several_files_and_of_one_of_them_all_come_through(tmp_path: Path) -> None:
    """Replacements in all files meet inserts that queue for each: nobody is told that a file keeps changing."""
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    for number in range(4):
        (root / f"notes{number}.txt").write_text("".join(f"<word{who}>\n" for who in range(8)))
    optional = {"included_optional_tools": ["replace_in_files", "insert_at_line"]}
    async with running_parts(tmp_path, {"edit_diagnostics_s": 0, **optional}) as central:

        async def everywhere(who: int) -> None:
            arguments = {"needle": f"<word{who}>", "repl": f"<done{who}>", "mode": "literal", "project": str(root)}
            session = session_of(central, explicit_id=f"all-{who}")
            await central.caller.call(session, "replace_in_files", {**arguments, "relative_path": "."})

        async def in_one(who: int) -> None:
            for number in range(4):
                session = session_of(central, explicit_id=f"one-{who}")
                arguments = {"relative_path": f"notes{number}.txt", "line": 0, "content": f"line of {who}\n"}
                await central.caller.call(session, "insert_at_line", {**arguments, "project": str(root)})

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for who in range(8):
                    tasks.start_soon(everywhere, who)
                    tasks.start_soon(in_one, who)
    for number in range(4):
        lines = (root / f"notes{number}.txt").read_text().splitlines()
        assert sorted(lines) == sorted([f"<done{who}>" for who in range(8)] + [f"line of {who}" for who in range(8)])


async def test_the_next_in_the_queue_is_told_who_changed_the_symbol(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 0\n")
    refused: list[EditConflict] = []
    async with running_parts(tmp_path) as central:
        sessions = [session_of(central, explicit_id=f"s-{number}") for number in range(4)]
        asked = {"name_path_pattern": "f", "include_body": True, "project": str(root), "relative_path": "a.py"}
        for session in sessions:
            await central.caller.call(session, "find_symbol", asked)

        async def replace(number: int) -> None:
            body = f"def f():\n    return {number + 1}"
            arguments = {"name_path": "f", "relative_path": "a.py", "body": body, "project": str(root)}
            try:
                await central.caller.call(sessions[number], "replace_symbol_body", arguments)
            except EditConflict as conflict:
                refused.append(conflict)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(len(sessions)):
                    tasks.start_soon(replace, number)
    (made,) = re.findall(r"return (\d)", (root / "a.py").read_text())
    by = sessions[int(made) - 1].id
    assert [conflict.changed_by.split()[1] for conflict in refused] == [by] * (len(sessions) - 1)
