"""Several sessions and an outside writer at the same files: nothing is lost, nothing doubled, nothing half written."""

import ast
import itertools
import json
import random
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serena_central.app import Application
from serena_central.core.errors import EditConflict, SerenaCentralError
from serena_central.files.walk import TEMPORARY
from tests.support.central import running_parts, session_of
from tests.support.child import serving_child

pytestmark = pytest.mark.anyio

SETTINGS = {"edit_diagnostics_s": 0}


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path_factory.mktemp("home"), SETTINGS) as running:
        yield running


# --- against a model -------------------------------------------------------------------------------


class Model:
    """What one file must hold: functions with the blank lines before each. And what each session has seen of them."""

    def __init__(self, path: Path, newline: str) -> None:
        self.path, self.newline = path, newline
        self.functions: list[tuple[str, int, int]] = [(f"f{number}", 0, 2 if number else 0) for number in range(3)]
        self.seen: dict[tuple[str, str], int] = {}
        self.write()

    @property
    def data(self) -> bytes:
        lines = [
            line
            for name, number, gap in self.functions
            for line in (*[""] * gap, f"def {name}():", f"    return {number}")
        ]
        return (self.newline.join(lines) + self.newline).encode()

    def write(self) -> None:
        self.path.write_bytes(self.data)

    def replace(self, place: int, number: int) -> None:
        name, _, gap = self.functions[place]
        self.functions[place] = (name, number, gap)

    def insert_after(self, place: int, name: str, number: int) -> None:
        self.functions.insert(place + 1, (name, number, 1))
        if place + 2 < len(self.functions):
            following, value, gap = self.functions[place + 2]
            self.functions[place + 2] = (following, value, max(gap, 1))

    def insert_before(self, place: int, name: str, number: int) -> None:
        own, value, gap = self.functions[place]
        self.functions[place] = (own, value, 1)
        self.functions.insert(place, (name, number, gap))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["see", "replace", "replace", "after", "before", "outside"]),
        st.sampled_from(["one", "two", "three"]),
        st.integers(0, 1),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=12,
)

_roots = itertools.count()
_numbers = itertools.count(1)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
async def test_any_edits_by_any_sessions_leave_what_the_model_says(
    central: Application, tmp_path: Path, steps: list[tuple[str, str, int, int]]
) -> None:
    root = tmp_path / f"root{next(_roots)}"
    root.mkdir()
    models = [Model(root / "unix.py", "\n"), Model(root / "dos.py", "\r\n")]
    for what, who, which, at in steps:
        await _step(central, root, models[which], what, who, at)
        assert [model.path.read_bytes() for model in models] == [model.data for model in models]
    assert sorted(path.name for path in root.iterdir()) == ["dos.py", "unix.py"]


async def _step(central: Application, root: Path, model: Model, what: str, who: str, at: int) -> None:
    place, number = at % len(model.functions), next(_numbers)
    name, value, _ = model.functions[place]
    body = f"def {name}():\n    return {number}"

    async def call(tool: str, **arguments: Any) -> None:
        given = {"project": str(root), "relative_path": model.path.name, **arguments}
        await central.caller.call(session_of(central, explicit_id=who + root.name), tool, given)

    if what == "see":
        await call("find_symbol", name_path_pattern=name, include_body=True)
        model.seen[who, name] = value
    elif what == "outside":
        model.replace(place, number)
        model.write()
    elif what == "replace" and model.seen.get((who, name), value) != value:
        with pytest.raises(EditConflict):
            await call("replace_symbol_body", name_path=name, body=body)
    elif what == "replace":
        await call("replace_symbol_body", name_path=name, body=body)
        model.replace(place, number)
        model.seen[who, name] = number
    else:
        new = f"g{number}"
        code = f"def {new}():\n    return {number}\n"
        await call(f"insert_{what}_symbol", name_path=name, body=code)
        (model.insert_after if what == "after" else model.insert_before)(place, new, number)
        model.seen[who, new] = number


# --- at the same time ------------------------------------------------------------------------------


async def _edit_at_once(central: Application, root: Path, *, sessions: int, files: int, edits: int) -> None:
    """Each session changes its own function in files that all change; an outside writer adds lines meanwhile."""
    for number in range(files):
        text = "\n\n\n".join(f"def of_{who}():\n    return -1" for who in range(sessions))
        (root / f"mod{number}.py").write_text(text + "\n")
    accepted: dict[tuple[int, int], int] = {}
    refused: list[str] = []
    done = threading.Event()
    ended = threading.Semaphore(1)
    """Calls that ended: the writer outside writes once for each, so that it is no quicker than the machine is."""

    def outside() -> None:
        chosen = random.Random(1)
        for number in itertools.count():
            ended.acquire()
            if done.is_set():
                return
            with (root / f"mod{chosen.randrange(files)}.py").open("a") as file:
                file.write(f"# outside {number}\n")

    async def one(who: int) -> None:
        session, chosen = session_of(central, explicit_id=f"many-{who}"), random.Random(who)
        for number in range(edits):
            file = chosen.randrange(files)
            arguments = {
                "name_path": f"of_{who}",
                "relative_path": f"mod{file}.py",
                "body": f"def of_{who}():\n    return {number}",
                "project": str(root),
            }
            try:
                await central.caller.call(session, "replace_symbol_body", arguments)
                accepted[who, file] = number
            except SerenaCentralError as error:
                refused.append(str(error))
            finally:
                ended.release()

    with anyio.fail_after(600):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, outside)
            async with anyio.create_task_group() as editing:
                for who in range(sessions):
                    editing.start_soon(one, who)
            done.set()
            ended.release()

    assert accepted
    # Whoever refuses may only blame the writer outside.
    assert all("something outside" in reason for reason in refused), refused
    for number in range(files):
        text = (root / f"mod{number}.py").read_text()
        names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        assert names == [f"of_{who}" for who in range(sessions)]
        for who in range(sessions):
            assert f"def of_{who}():\n    return {accepted.get((who, number), -1)}\n" in text
    assert not [path for path in root.iterdir() if path.name.startswith(TEMPORARY)]


async def test_every_accepted_edit_of_many_sessions_is_in_the_files(central: Application, tmp_path: Path) -> None:
    await _edit_at_once(central, tmp_path, sessions=8, files=4, edits=8)


@pytest.mark.slow
async def test_sixteen_hundred_edits_of_eight_sessions_are_in_twenty_files(
    central: Application, tmp_path: Path
) -> None:
    await _edit_at_once(central, tmp_path, sessions=8, files=20, edits=200)


async def test_references_name_the_right_symbols_while_others_insert_before_them(
    central: Application, tmp_path: Path
) -> None:
    """Each insertion moves all uses below it: places of the old text, shown in the new one, would name others."""
    (tmp_path / "base.py").write_text("class Base:\n    pass\n")
    (tmp_path / "uses.py").write_text("from base import Base\n\n\ndef first() -> Base:\n    return Base()\n")
    named: list[str] = ["first"]
    done = anyio.Event()

    async def insert(who: int) -> None:
        session = session_of(central, explicit_id=f"inserts-{who}")
        for number in range(20):
            name = f"f_{who}_{number}"
            body = f"def {name}() -> Base:\n    return Base()\n"
            given = {"name_path": "first", "relative_path": "uses.py", "body": body, "project": str(tmp_path)}
            await central.caller.call(session, "insert_after_symbol", given)
            named.append(name)

    async def ask(who: int) -> None:
        session = session_of(central, explicit_id=f"asks-{who}")
        given = {"name_path": "Base", "relative_path": "base.py", "project": str(tmp_path)}
        while not done.is_set():
            expected = set(named)
            answer, *notes = (await central.caller.call(session, "find_referencing_symbols", given)).blocks
            functions = json.loads(answer)["uses.py"]["Function"]
            assert expected <= {one["name_path"] for one in functions} or "call again" in "".join(notes).lower()

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            for who in range(2):
                tasks.start_soon(ask, who)
            async with anyio.create_task_group() as inserting:
                for who in range(2):
                    inserting.start_soon(insert, who)
            done.set()


async def _insert_into_hot_files(folder: Path, *, sessions: int, projects: int, inserts: int) -> None:
    """All sessions of a project insert into its one file, each after another symbol."""
    roots = [folder / f"project{number}" for number in range(projects)]
    for root in roots:
        root.mkdir()
        functions = (f"def f{number}():\n    a = {number}\n    return a\n" for number in range(125))
        (root / "hot.py").write_text("\n".join(functions))

    async with running_parts(folder) as central:

        async def one(who: int) -> None:
            session = session_of(central, explicit_id=f"hot-{who}")
            for number in range(inserts):
                arguments = {
                    "name_path": f"f{(who + number) % 125}",
                    "relative_path": "hot.py",
                    "body": f"def g_{who}_{number}():\n    return {number}\n",
                    "project": str(roots[who % projects]),
                }
                await central.caller.call(session, "insert_after_symbol", arguments)

        async with anyio.create_task_group() as tasks:
            for who in range(sessions):
                tasks.start_soon(one, who)
    for place, root in enumerate(roots):
        names = [
            node.name for node in ast.parse((root / "hot.py").read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        inserted = [f"g_{who}_{number}" for who in range(place, sessions, projects) for number in range(inserts)]
        assert sorted(names) == sorted([f"f{number}" for number in range(125)] + inserted)


async def test_edits_of_one_hot_file_are_all_made_and_none_is_refused(tmp_path: Path) -> None:
    with anyio.fail_after(240):
        await _insert_into_hot_files(tmp_path, sessions=16, projects=1, inserts=2)


@pytest.mark.slow
async def test_edits_of_256_sessions_in_six_hot_files_are_all_made_and_none_is_refused(tmp_path: Path) -> None:
    with anyio.fail_after(1200):
        await _insert_into_hot_files(tmp_path, sessions=256, projects=6, inserts=3)


# --- killed in the middle --------------------------------------------------------------------------

LINES = 400


def _body(name: str, number: int) -> str:
    return "\n".join([f"def {name}():", *(f"    x = {number}" for _ in range(LINES))])


async def _kill_while_editing(folder: Path, times: int) -> None:
    """Kills the server in the middle of edits; each function must be one whole version, and no older than the last
    that was answered."""
    root = folder / "project"
    root.mkdir()
    files = [root / f"mod{number}.py" for number in range(4)]
    for file in files:
        file.write_text(_body("first", 0) + "\n")
    numbers = itertools.count(1)
    answered = dict.fromkeys(files, 0)
    asked = dict.fromkeys(files, 0)

    async def edit(http: httpx.AsyncClient, file: Path, killed: anyio.Event) -> None:
        with anyio.CancelScope() as scope:
            while not killed.is_set():
                number = asked[file] = next(numbers)
                arguments = {"name_path": "first", "relative_path": file.name, "body": _body("first", number)}
                request = {"arguments": {**arguments, "project": str(root)}, "session": f"s-{file.stem}"}
                try:
                    answer = await http.post("/api/v1/tools/replace_symbol_body", json=request)
                except httpx.TransportError:
                    scope.cancel()
                    return
                if answer.status_code == 200:
                    assert "edit" in json.loads(answer.json()["blocks"][0])
                    answered[file] = number
                else:  # killed before it was kept that the session saw its own last edit: it looks, as it is told to
                    assert answer.json()["error"]["kind"] == "edit_conflict", answer.text
                    look = {"name_path_pattern": "first", "include_body": True, "project": str(root)}
                    seen = {"arguments": {**look, "relative_path": file.name}, "session": f"s-{file.stem}"}
                    with suppress(httpx.TransportError):
                        await http.post("/api/v1/tools/find_symbol", json=seen)

    for turn in range(times):
        async with serving_child(folder) as child, child.http() as http:
            _check(root, files, answered, asked)
            await http.post(
                "/api/v1/tools/find_symbol", json={"arguments": {"name_path_pattern": "first", "project": str(root)}}
            )
            killed = anyio.Event()
            async with anyio.create_task_group() as tasks:
                for file in files:
                    tasks.start_soon(edit, http, file, killed)
                before = sum(answered.values())
                while sum(answered.values()) == before:
                    await anyio.sleep(0.001)
                await anyio.sleep(random.Random(turn).uniform(0, 0.05))
                await child.end(signal.SIGKILL)
                killed.set()
    async with serving_child(folder):
        _check(root, files, answered, asked)


def _check(root: Path, files: list[Path], answered: dict[Path, int], asked: dict[Path, int]) -> None:
    for file in files:
        numbers = {line for line in file.read_text().splitlines() if line.startswith("    x = ")}
        (only,) = numbers
        found = int(only.rpartition(" ")[2])
        assert file.read_text() == _body("first", found) + "\n"
        assert found in (answered[file], asked[file])
        answered[file] = found
    assert sorted(path.name for path in root.iterdir()) == sorted(file.name for file in files)


async def test_a_server_that_is_killed_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    with anyio.fail_after(240):
        await _kill_while_editing(tmp_path, 3)


@pytest.mark.slow
async def test_fifty_kills_leave_each_file_old_or_new(tmp_path: Path) -> None:
    with anyio.fail_after(1200):
        await _kill_while_editing(tmp_path, 50)
