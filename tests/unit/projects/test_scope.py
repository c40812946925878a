"""Which project a call means: the argument before the path, the path before the session, then the session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import UnknownProject
from serena_central.projects.scope import Ask, Scope, resolve_scope
from tests.support.registries import Registered, running

pytestmark = pytest.mark.anyio


class Repositories:
    """Three repositories and a worktree nested in the first one."""

    def __init__(self, folder: Path) -> None:
        self.world = Registered(folder)
        self.one, self.two, self.three = (folder / name for name in ("one", "two", "three"))
        self.nested = self.one / "trees" / "nested"
        for root in (self.one, self.two, self.three, self.nested):
            (root / ".git").mkdir(parents=True)

    async def scope(self, **said: object) -> Scope:
        return await resolve_scope(self.world.registry, Ask(**said))  # type: ignore[arg-type]  # any facts, by name

    async def roots(self, **said: object) -> list[Path]:
        return [project.root for project in (await self.scope(**said)).projects]


@asynccontextmanager
async def repositories(folder: Path) -> AsyncGenerator[Repositories]:
    made = Repositories(folder)
    with anyio.fail_after(10):
        async with running(made.world):
            yield made


async def test_each_rule_gives_way_to_the_ones_before_it(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        said = {
            "project": str(r.one),
            "paths": [str(r.nested / "x.py")],
            "active_root": str(r.two),
            "working_folder": str(r.three / "src"),
        }
        found: list[Path] = []
        while said:
            found += await r.roots(**said)
            said.pop(next(iter(said)))
        assert found == [r.one, r.nested, r.two, r.three]


async def test_without_any_hint_the_known_projects_are_listed(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        await r.roots(project=str(r.one))
        with pytest.raises(UnknownProject, match="Known projects: one"):
            await r.scope()
        with pytest.raises(UnknownProject):
            await r.scope(working_folder=str(tmp_path / "nowhere"), paths=["/nowhere/x.py"])


async def test_a_relative_path_chooses_no_project(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        assert await r.roots(paths=["trees/nested/x.py"], active_root=str(r.one)) == [r.one]


async def test_a_path_in_a_nested_worktree_means_the_worktree(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        assert await r.roots(paths=[str(r.nested / "a" / "b.py")], active_root=str(r.one)) == [r.nested]


async def test_several_projects_come_grouped_in_the_order_asked_and_once(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        scope = await r.scope(project=[str(r.two), str(r.one), str(r.two)])
        assert ([project.root for project in scope.projects], scope.grouped) == ([r.two, r.one], True)
        for everything in ("*", ["*"]):
            scope = await r.scope(project=everything)
            assert ({project.root for project in scope.projects}, scope.grouped) == ({r.one, r.two}, True)
        assert not (await r.scope(project="one")).grouped


async def test_a_project_of_several_that_does_not_open_is_told_beside_the_others(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        await r.roots(project=[str(r.one), str(r.two)])
        r.world.registry.close(r.two, "test")
        r.two.rename(tmp_path / "moved")
        scope = await r.scope(project=["one", "two"])
        assert ([project.root for project in scope.projects], list(scope.failures)) == ([r.one], ["two"])


async def test_an_unknown_name_among_several_is_a_mistake_of_the_call(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        with pytest.raises(UnknownProject, match="nope"):
            await r.scope(project=[str(r.one), "nope"])
