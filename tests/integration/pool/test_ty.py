"""The pool with the bundled Python server: shared, killed in the middle of calls, replaced under load."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.config.policies import PoolPolicy
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.core.text import Position
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.pool.key import WantedServer
from serena_central.pool.pool import LanguageServerPool
from tests.support.fakes import text_of
from tests.support.pools import until_gone

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def pool_of(folder: Path, **policy: Any) -> AsyncGenerator[LanguageServerPool]:
    pool = LanguageServerPool(bus=EventBus(), places=Places(folder / "home"), policy=PoolPolicy(**policy))
    async with anyio.create_task_group() as tasks:
        await tasks.start(pool.run)
        try:
            yield pool
        finally:
            tasks.cancel_scope.cancel()


def project(folder: Path, name: str) -> WantedServer:
    """A root whose `shapes.py` defines a class of the root's name, used in `use.py`."""
    root = folder / name
    root.mkdir()
    (root / "shapes.py").write_text(f"class {name.title()}:\n    def area(self) -> int:\n        return 1\n")
    (root / "use.py").write_text(f"from shapes import {name.title()}\n\nprint({name.title()}().area())\n")
    return WantedServer(catalogue().server("ty"), root, {}, text_of, None)


async def names(server: LanguageServer) -> list[str]:
    with anyio.fail_after(60):
        return [symbol.name for symbol in await server.document_symbols(server.root / "shapes.py")]


async def test_concurrent_callers_of_two_projects_share_one_process_each(tmp_path: Path) -> None:
    async with pool_of(tmp_path) as pool:
        circle, square = project(tmp_path, "circle"), project(tmp_path, "square")
        answers: list[tuple[str, list[str]]] = []

        async def ask(wanted: WantedServer) -> None:
            answers.append((wanted.root.name, await pool.read(wanted, names)))

        async with anyio.create_task_group() as tasks:
            for wanted in (circle, square) * 25:
                tasks.start_soon(ask, wanted)
        assert sorted(answers) == [("circle", ["Circle"])] * 25 + [("square", ["Square"])] * 25
        await pool.sweep()
        shown = pool.snapshot()
        assert [each.calls for each in shown] == [25, 25]
        assert all(each.memory_bytes > 1024 * 1024 for each in shown)


async def test_reads_survive_the_death_of_their_server(tmp_path: Path) -> None:
    async with pool_of(tmp_path) as pool:
        wanted = project(tmp_path, "circle")
        killed: list[int] = []

        async def find_references(server: LanguageServer) -> int:
            if not killed:
                assert server.pid is not None
                killed.append(server.pid)
                os.kill(server.pid, signal.SIGKILL)
            with anyio.fail_after(60):
                found = await server.references(
                    server.root / "shapes.py", Position(0, 6), include_declaration=True, candidates=[]
                )
            return len(found)

        assert await pool.read(wanted, find_references) == 3
        assert pool.snapshot()[0].restarts == 1
        await until_gone(killed[0])


async def test_nothing_is_lost_or_stale_while_servers_are_replaced_under_load(tmp_path: Path) -> None:
    async with pool_of(tmp_path, max_calls=15) as pool:
        wanted = project(tmp_path, "circle")
        shapes = wanted.root / "shapes.py"
        (wanted.root / "steady.py").write_text("def steady() -> None: ...\n")
        await pool.read(wanted, names)
        answers = 0

        async def work() -> None:
            nonlocal answers
            for _ in range(15):
                found = await pool.read(wanted, lambda server: server.document_symbols(server.root / "steady.py"))
                assert [symbol.name for symbol in found] == ["steady"]
                answers += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(work)
            for number in range(20):
                shapes.write_text(f"class Circle{number}:\n    pass\n")
                pool.files_changed(wanted.root, [FileEvent(shapes, "changed")])
                assert await pool.read(wanted, names) == [f"Circle{number}"]
        assert answers == 90
        assert pool.snapshot()[0].restarts >= 1
