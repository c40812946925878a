"""The registry opens each root once, refuses what must not be a project, and closes what nobody needs."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from serena_central.core.errors import ConfigError, ProjectRefused, SerenaCentralError, UnknownProject
from serena_central.core.progress import report, reporting_to
from serena_central.projects.project import Project
from serena_central.projects.registry import CLOSE_AFTER_S, KnownProject
from serena_central.projects.root_policy import PERSON
from tests.support.registries import Registered, running

pytestmark = pytest.mark.anyio


def folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir(parents=True)
    return parent / name


@pytest.mark.parametrize("asked", ["/", "~nobody-has-this-name/x", "/tmp/\0x"])
async def test_what_can_not_be_a_project_is_refused(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ProjectRefused):
        Registered(tmp_path).registry.find(asked, PERSON)


async def test_the_home_folder_and_what_lies_above_are_refused_also_behind_a_link(tmp_path: Path) -> None:
    world = Registered(tmp_path)
    (tmp_path / "link").symlink_to(world.home)
    for asked in (world.home, world.home.parent, tmp_path / "link", world.home / "x" / ".."):
        with pytest.raises(ProjectRefused, match="home folder"):
            world.registry.find(str(asked), PERSON)


async def test_a_missing_folder_and_a_file_are_unknown_projects(tmp_path: Path) -> None:
    world = Registered(tmp_path, known=(KnownProject("app", str(tmp_path / "app")),))
    (tmp_path / "file").touch()
    for asked in ("missing", "file"):
        with pytest.raises(UnknownProject, match="app"):
            world.registry.find(str(tmp_path / asked), PERSON)


async def test_allowed_roots_bound_what_may_become_a_project(tmp_path: Path) -> None:
    inside, outside = folder(tmp_path / "src", "app"), folder(tmp_path, "srcs")
    registry = Registered(tmp_path, allowed=(tmp_path / "src",)).registry
    assert registry.find(str(inside), PERSON) == inside
    (inside / "out").symlink_to(outside)
    for asked in (outside, inside / "out", inside / ".." / ".." / "srcs"):
        with pytest.raises(ProjectRefused, match="allowed_roots"):
            registry.find(str(asked), PERSON)


async def test_a_name_that_two_projects_have_asks_for_a_path(tmp_path: Path) -> None:
    roots = [folder(tmp_path / parent, "app") for parent in ("a", "b")]
    registry = Registered(tmp_path, known=tuple(KnownProject("app", str(root)) for root in roots)).registry
    assert registry.known_names() == [str(root) for root in roots]
    with pytest.raises(ProjectRefused, match=r"2 projects.*a/app.*b/app"):
        registry.find("app", PERSON)
    assert registry.find(str(roots[1]), PERSON) == roots[1]


async def test_the_deepest_root_contains_a_path_nested_worktrees_included(tmp_path: Path) -> None:
    registry = Registered(tmp_path).registry
    (folder(tmp_path, "repo") / ".git").mkdir()
    (folder(tmp_path, "repo/src/module") / ".serena").mkdir()
    (tmp_path / "repo/src/module/.serena/project.yml").touch()
    (folder(tmp_path, "repo/trees/feature") / ".git").write_text("gitdir: elsewhere")
    found = {path: registry.root_of(tmp_path / path) for path in ("repo/src/x.py", "repo/src/module/deep/y.py")}
    assert found == {
        "repo/src/x.py": tmp_path / "repo",
        "repo/src/module/deep/y.py": tmp_path / "repo/src/module",
    }
    assert registry.root_of(tmp_path / "repo/trees/feature/z.py") == tmp_path / "repo/trees/feature"


async def test_a_known_root_needs_no_marker_and_the_search_ends_at_home(tmp_path: Path) -> None:
    plain = folder(tmp_path, "home/plain")
    world = Registered(tmp_path, known=(KnownProject("plain", str(plain)),))
    (world.home / ".git").mkdir()
    assert world.registry.root_of(plain / "a" / "b.py") == plain
    assert world.registry.root_of(world.home / "other" / "b.py") is None


async def test_many_askers_open_a_project_once(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    opened: list[Project] = []
    async with running(world) as registry, anyio.create_task_group() as tasks:

        async def ask() -> None:
            opened.append(await registry.open(root))

        for _ in range(10):
            tasks.start_soon(ask)
        while len(opened) < 10:
            await anyio.wait_all_tasks_blocked()
    assert (world.built, len(set(map(id, opened)))) == ([root], 1)
    assert world.kinds() == ["project.opened"]


async def test_opening_outlives_the_asker_who_came_first(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    async with running(world) as registry:
        async with anyio.create_task_group() as asker:
            world.before_build = asker.cancel_scope.cancel
            asker.start_soon(registry.open, root)
        world.before_build = lambda: None
        await registry.open(root)
    assert world.built == [root]


async def test_a_project_tells_its_own_work_to_no_call_not_even_the_first(tmp_path: Path) -> None:
    world = Registered(tmp_path)
    world.before_build = lambda: report("working")
    said: list[str] = []
    async with running(world) as registry:
        with reporting_to(lambda message, _part: said.append(message)):
            await registry.open(folder(tmp_path, "app"))
    assert world.built
    assert said == []


async def test_a_failed_opening_is_told_to_all_and_tried_anew(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")

    def fail() -> None:
        raise ConfigError("languages", "must be a list")

    world.before_build = fail
    told: list[str] = []
    async with running(world) as registry:

        async def ask() -> None:
            with pytest.raises(SerenaCentralError) as caught:
                await registry.open(root)
            told.append(str(caught.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        assert told == ["languages: must be a list"] * 2
        world.before_build = lambda: None
        assert (await registry.open(root)).root == root
    assert world.kinds() == ["project.failed", "project.opened"]


async def test_a_bug_in_one_project_leaves_the_others_open(tmp_path: Path) -> None:
    world, good, bad = Registered(tmp_path), folder(tmp_path, "good"), folder(tmp_path, "bad")
    async with running(world) as registry:
        await registry.open(good)

        def fail() -> None:
            raise ValueError("odd")

        world.before_build = fail
        with pytest.raises(ProjectRefused, match=r"failed and was closed .* The next call opens it again") as refused:
            await registry.open(bad)
        assert "odd" not in str(refused.value)  # the inside of a bug is for the log
        assert [project.root for project in registry.open_projects()] == [good]


async def test_a_closed_project_opens_again_and_stays_known(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    async with running(world) as registry:
        first = await registry.open(root)
        registry.close(root, "test")
        assert (registry.open_projects(), registry.known_names()) == ([], ["app"])
        second = await registry.open(root)
        assert second is not first
        await anyio.wait_all_tasks_blocked()
        assert registry.open_projects() == [second]


async def test_closing_while_it_opens_tells_those_who_wait(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    async with running(world) as registry:
        world.before_build = lambda: registry.close(root, "test")
        with pytest.raises(ProjectRefused, match="Call again"):
            await registry.open(root)
        world.before_build = lambda: None
        assert (await registry.open(root)).root == root


async def test_a_project_is_swept_when_nobody_is_attached_and_nobody_asked(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    async with running(world) as registry:
        project = await registry.open(root)
        registry.attach(str(root))
        registry.sweep(project.last_used + CLOSE_AFTER_S)
        assert registry.open_projects() == [project]
        registry.detach(str(root))
        registry.sweep(project.last_used + CLOSE_AFTER_S - 1)
        assert registry.open_projects() == [project]
        registry.sweep(project.last_used + CLOSE_AFTER_S)
        assert registry.open_projects() == []


async def test_a_project_whose_folder_is_gone_can_be_forgotten_by_its_path(tmp_path: Path) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    async with running(world) as registry:
        await registry.open(root)
        registry.close(root, "test")
        root.rmdir()
        with pytest.raises(UnknownProject):
            await registry.open(registry.find("app", PERSON))
        registry.forget(registry.find(str(root), PERSON))
        assert registry.known_names() == []


async def test_a_project_whose_settings_changed_is_opened_anew(tmp_path: Path) -> None:
    root = folder(tmp_path, "app")
    world = Registered(tmp_path)
    async with running(world) as registry:
        first = await registry.open(root)
        assert await registry.open(root) is first
        (root / ".serena").mkdir()
        (root / ".serena" / "project.yml").write_text("languages: [python]\n")
        second = await registry.open(root)
        assert second is not first
        assert await registry.open(root) is second
        assert world.kinds() == ["project.opened", "project.closed", "project.opened"]


async def test_a_project_that_is_removed_as_it_becomes_ready_stays_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, root = Registered(tmp_path), folder(tmp_path, "app")
    run = Project.run

    async def ready_and_removed(project: Project, *args: Any, task_status: TaskStatus[None]) -> None:
        class Ready:
            def started(self, value: None = None) -> None:
                task_status.started(value)
                world.registry.forget(root)  # a call that has its turn before whoever opens it

        await run(project, *args, task_status=Ready())

    monkeypatch.setattr(Project, "run", ready_and_removed)
    async with running(world) as registry:
        with pytest.raises(ProjectRefused, match="Call again"):
            await registry.open(root)
        assert (registry.open_projects(), registry.known_names()) == ([], [])
    assert world.kinds() == ["project.closed", "project.removed"]
