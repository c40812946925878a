"""What takes long in a large project is done in threads, or with turns for others: nobody else waits for it."""

import importlib
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import starlette

from serena_central.analysis import graph
from serena_central.analysis.word_index import Surroundings
from serena_central.core import pacing
from serena_central.files.boundary import shown
from serena_central.tools import files
from tests.support.central import running_central, running_parts

pytestmark = pytest.mark.anyio


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A part of Starlette's source, as a project of its own."""
    root = tmp_path / "shop"
    source = Path(starlette.__file__).parent / "middleware"
    shutil.copytree(source, root / "middleware", ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize("granularity", ["file", "symbol"])
async def test_a_graph_is_analysed_in_a_thread_where_networkx_is_imported_too(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    threads: list[int] = []

    def noted(name: str) -> Any:
        threads.append(threading.get_ident())
        return importlib.import_module(name)

    monkeypatch.setattr(graph, "import_module", noted)
    settings = {"included_optional_tools": ["dependency_graph"]}
    async with running_central(tmp_path, settings) as central, central.raw("handshake") as client:
        answer = await client.call("dependency_graph", project=str(package), granularity=granularity)
        assert not answer["isError"], answer
    assert threads
    assert threading.get_ident() not in threads


class Turns:
    """Counts the turns of another task: what is `spied` on notes their number at each call."""

    def __init__(self) -> None:
        self.count = 0
        self.at: dict[str, list[int]] = {}

    async def __aenter__(self) -> "Turns":
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._take)
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(*error)

    async def _take(self) -> None:
        while True:
            self.count += 1
            await anyio.lowlevel.checkpoint()

    def spied(self, monkeypatch: pytest.MonkeyPatch, part: Any, name: str) -> None:
        asked = getattr(part, name)

        def ask(path: str, *more: Any, **named: Any) -> Any:
            self.at.setdefault(name, []).append(self.count)
            return asked(path, *more, **named)

        monkeypatch.setattr(part, name, ask)

    @property
    def apart(self) -> dict[str, int]:
        """How many of the calls had a turn of others between them."""
        return {name: len(set(seen)) for name, seen in self.at.items()}


@pytest.fixture
def no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of time is over at once."""
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)


@pytest.mark.usefixtures("no_slice")
async def test_others_run_while_the_files_of_a_project_are_looked_through(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(package)
        async with Turns() as turns:
            turns.spied(monkeypatch, project.languages, "is_code")
            turns.spied(monkeypatch, project.languages, "is_marker")
            around = await Surroundings.of(project, {"dispatch"})
        assert "middleware/base.py" in around.holding({"dispatch"})
        known = len(project.tree.files)
        assert turns.apart == {"is_code": known, "is_marker": known}


FILES = 40


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    """Many files that define one name."""
    root = tmp_path / "alike"
    root.mkdir()
    for number in range(FILES):
        (root / f"m{number:02}.py").write_text("def same():\n    pass\n")
    (root / "a.py").write_text("def other():\n    pass\n")
    return root


@pytest.mark.usefixtures("no_slice")
async def test_others_run_while_symbols_of_many_files_are_decoded(
    alike: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(alike)
        await project.find("same")
        async with Turns() as turns:
            turns.spied(monkeypatch, project.index, "decoded")
            assert len((await project.find("same")).hits) == FILES
            assert turns.at == {}  # they are counted
            assert len((await project.find("/same")).hits) == FILES
            assert turns.apart == {"decoded": FILES}
            turns.at.clear()
            overview, _ = await project.overview(".")
            assert len(overview) == FILES + 1
            assert turns.at == {}  # until they are shown
            assert overview["a.py"].name_path(0) == "other"
            assert await overview.counts(lambda _kind: True) == dict.fromkeys(overview, 1)
            assert turns.apart == {"decoded": 1}


@pytest.mark.usefixtures("no_slice")
async def test_others_run_while_names_of_many_files_are_looked_at(
    alike: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noted(path: str) -> str:
        threads.append(threading.get_ident())
        return shown(path)

    async with running_central(tmp_path) as central, central.raw("handshake") as client, Turns() as turns:
        project = await central.central.projects.open(alike)
        monkeypatch.setattr("serena_central.tools.files.shown", noted)
        listed = await client.call("list_dir", project=str(alike), relative_path=".", recursive=True)
        assert f"m{FILES - 1}.py" in listed["content"][0]["text"]
        assert len(threads) == FILES + 1
        assert threading.get_ident() not in threads

        turns.spied(monkeypatch, project.languages, "is_searched")
        fitting = files._fitting  # pyright: ignore[reportPrivateUsage]

        def spied(mask: str, prefix: str) -> Any:
            asked = SimpleNamespace(fits=fitting(mask, prefix))
            turns.spied(monkeypatch, asked, "fits")
            return asked.fits

        monkeypatch.setattr(files, "_fitting", spied)
        found = await client.call("find_file", project=str(alike), file_mask="m*.py", relative_path=".")
        assert f"m{FILES - 1}.py" in found["content"][0]["text"]
        arguments: dict[str, Any] = {"substring_pattern": "same", "restrict_search_to_code_files": True}
        searched = await client.call("search_for_pattern", project=str(alike), **arguments)
        assert f"m{FILES - 1}.py" in searched["content"][0]["text"]
        assert turns.apart["fits"] == FILES + 1
        assert turns.apart["is_searched"] >= FILES + 1


@pytest.mark.usefixtures("no_slice")
async def test_a_symbol_that_moves_while_others_have_their_turn_is_found(
    alike: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(alike)
        await project.find("same")  # reads the files
        seen: list[str] = []
        asked = project.index.decoded

        def decoded(path: str, *more: Any, **named: Any) -> Any:
            seen.append(path)
            return asked(path, *more, **named)

        async def move() -> None:
            while not seen:
                await anyio.lowlevel.checkpoint()
            last = alike / f"m{FILES - 1}.py"
            (alike / "a.py").write_text(last.read_text())
            last.write_text("")
            await project.tree.fresh()
            assert seen[-1] < last.name  # it was not looked at yet

        monkeypatch.setattr(project.index, "decoded", decoded)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(move)
            found = await project.find("/same")
        paths = [hit.path for hit in found.hits]
        assert paths == ["a.py", *(f"m{number:02}.py" for number in range(FILES - 1))]
        assert not found.gaps
