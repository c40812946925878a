"""What takes long in a large project is done in threads, or with turns for others: nobody else waits for it."""

import importlib
import shutil
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import starlette

from serena_central.analysis import graph
from serena_central.analysis.surroundings import Surroundings
from serena_central.core import pacing
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


async def test_others_run_while_the_files_of_a_project_are_looked_through(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(package)
        languages, turns, at = project.languages, 0, dict[str, list[int]]()

        def spied(name: str) -> None:
            asked = getattr(languages, name)

            def ask(path: str) -> bool:
                at.setdefault(name, []).append(turns)
                return asked(path)

            monkeypatch.setattr(languages, name, ask)

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(pacing, "SLICE_S", 0.0)  # each slice of time is over at once
        spied("is_code")
        spied("is_marker")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            around = await Surroundings.of(project, {"dispatch"})
            tasks.cancel_scope.cancel()
        assert around.holds("middleware/base.py", {"dispatch"})
        files = len(project.tree.files)
        assert {name: len(set(seen)) for name, seen in at.items()} == {"is_code": files, "is_marker": files}
