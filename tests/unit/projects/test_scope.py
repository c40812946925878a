"""Which project a call means: the argument before the path, the path before the session, then the session."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import ProjectRefused, ToolRefused, UnknownProject
from serena_central.files import mounts
from serena_central.projects.root_policy import PERSON
from serena_central.projects.scope import Ask, Scope, labels_of, resolve_scope
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
        return await resolve_scope(self.world.registry, self.world.repos, Ask(**said))  # type: ignore[arg-type]  # any facts, by name

    async def roots(self, **said: object) -> list[Path]:
        return [project.root for project in (await self.scope(**said)).projects]


@asynccontextmanager
async def repositories(folder: Path) -> AsyncGenerator[Repositories]:
    made = Repositories(folder)
    with anyio.fail_after(60):
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
        with pytest.raises(UnknownProject, match="Known projects: 'one'"):
            await r.scope()
        with pytest.raises(UnknownProject):
            await r.scope(working_folder=str(tmp_path / "nowhere"), paths=["/nowhere/x.py"])


async def test_a_project_whose_file_system_is_away_is_refused_and_keeps_nobody_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with repositories(tmp_path) as r:
        monkeypatch.setattr(mounts.REMOTE, "points", lambda: frozenset({str(r.two)}))
        monkeypatch.setattr(mounts, "_answers", lambda _point: False)
        for said in ({"active_root": str(r.two)}, {"working_folder": str(r.two)}, {"paths": [f"{r.two}/a.py"]}):
            with pytest.raises(ProjectRefused, match="does not answer"):
                await r.roots(**said)
        assert await r.roots(project=str(r.one), active_root=str(r.two), working_folder=str(r.two)) == [r.one]


async def test_a_relative_path_chooses_no_project(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        assert await r.roots(paths=["trees/nested/x.py"], active_root=str(r.one)) == [r.one]


async def test_a_path_in_a_nested_worktree_means_the_worktree(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        assert await r.roots(paths=[str(r.nested / "a" / "b.py")], active_root=str(r.one)) == [r.nested]


@pytest.mark.parametrize("is_open", [False, True])
async def test_an_ignored_project_in_which_the_client_works_is_one_of_its_own(tmp_path: Path, *, is_open: bool) -> None:
    async with repositories(tmp_path) as r:
        inner, other = r.one / "build" / "inner", r.one / "build" / "other"
        for folder in (inner, other):
            folder.mkdir(parents=True)
        (inner / "src").mkdir()
        (inner / "pyproject.toml").touch()
        (r.one / "package.json").touch()
        (r.one / ".gitignore").write_text("build/\n")
        if is_open:
            assert await r.roots(paths=[str(other / "x.py")]) == [r.one]  # who works elsewhere means the project around
        assert await r.roots(working_folder=str(inner), paths=[str(inner / "x.py")]) == [inner]
        for folder in (inner, inner / "src"):
            assert await r.roots(working_folder=str(folder)) == [inner]
        assert await r.roots(working_folder=str(other)) == [r.one]  # a build's folder, where people work on the project
        assert await r.roots(working_folder=str(inner), paths=[str(r.one / "y.py")]) == [r.one]
        assert await r.roots(working_folder=str(r.one / "src")) == [r.one]
        assert await r.roots(working_folder=str(r.one / "build" / "gone")) == [r.one]


async def test_several_projects_come_grouped_in_the_order_asked_and_once(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        scope = await r.scope(project=[str(r.two), str(r.one), str(r.two)])
        assert ([project.root for project in scope.projects], scope.grouped) == ([r.two, r.one], True)
        for everything in ("*", ["*"]):
            scope = await r.scope(project=everything)
            assert ({project.root for project in scope.projects}, scope.grouped) == ({r.one, r.two}, True)
        assert not (await r.scope(project="one")).grouped
        for everything in ("one,*", '["*", "one"]'):
            assert set(await r.roots(project=everything)) == {r.one, r.two}
        assert set(await r.roots(project=["*", str(r.three)])) == {r.one, r.two, r.three}


async def test_a_project_of_several_that_does_not_open_is_told_beside_the_others(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        await r.roots(project=[str(r.one), str(r.two)])
        r.world.registry.close(r.two, "test")
        r.two.rename(tmp_path / "moved")
        scope = await r.scope(project=["one", "two"])
        assert ([project.root for project in scope.projects], [one.name for one in scope.failures]) == (
            [r.one],
            ["two"],
        )


async def test_an_unknown_name_among_several_is_a_mistake_of_the_call(tmp_path: Path) -> None:
    async with repositories(tmp_path) as r:
        with pytest.raises(UnknownProject, match="nope"):
            await r.scope(project=[str(r.one), "nope"])


class Platform:
    """A super-repo with two modules, docs and a file at its root; `api` is the default module."""

    def __init__(self, folder: Path) -> None:
        self.world = Registered(folder)
        self.root = (folder / "platform").resolve()
        for place in ("modules/api/src", "modules/web/src", "docs", ".serena"):
            (self.root / place).mkdir(parents=True)
        for file in ("README.md", "modules/api/README.md", "modules/api/src/x.py", "docs/guide.md"):
            (self.root / file).write_text("text")
        self.configure("default_module: api\n")
        self.api, self.web = (self.root / "modules" / name for name in ("api", "web"))

    def configure(self, more: str) -> None:
        (self.root / ".serena/project.yml").write_text(
            "type: super-repo\nmodules:\n"
            "  api: {path: modules/api, languages: [python], concerns: [backend]}\n"
            "  web: {path: modules/web, languages: [typescript], concerns: [frontend, pages]}\n"
            "routing_hints: {react: [web], login: [web, api]}\n" + more
        )

    async def scope(self, **said: object) -> Scope:
        facts = {"working_folder": str(self.root), **said}
        return await resolve_scope(self.world.registry, self.world.repos, Ask(**facts))  # type: ignore[arg-type]  # as above

    async def root_of(self, **said: object) -> Path:
        (project,) = (await self.scope(**said)).projects
        return project.root


@asynccontextmanager
async def platform(folder: Path) -> AsyncGenerator[Platform]:
    made = Platform(folder)
    with anyio.fail_after(60):
        async with running(made.world):
            yield made


async def test_in_a_super_repo_each_rule_gives_way_to_the_ones_before_it(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        assert await p.root_of(project="web", paths=["modules/api/src/x.py"]) == p.web
        assert await p.root_of(paths=["modules/api/src/x.py"], semantic_context="a react page") == p.api
        assert await p.root_of(semantic_context="a react page", active_root=str(p.api)) == p.web
        assert await p.root_of(semantic_context="nothing to go by", active_root=str(p.web)) == p.web
        assert await p.root_of(working_folder=str(p.web / "src")) == p.web
        assert await p.root_of() == p.api
        assert await p.root_of(active_root=str(p.root)) == p.api


async def test_a_path_from_the_super_repos_root_is_handed_on_as_an_absolute_one(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        scope = await p.scope(paths=["modules/api/src/x.py"])
        assert scope.paths == {"modules/api/src/x.py": str(p.api / "src/x.py")}
        assert await p.root_of(paths=[str(p.web / "src/new.ts")]) == p.web


async def test_a_path_from_the_super_repos_root_is_understood_by_named_modules_too(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        for project in ("*", "api"):
            scope = await p.scope(project=project, paths=["modules/api/src/x.py"])
            assert scope.paths == {"modules/api/src/x.py": str(p.api / "src/x.py")}
        assert (await p.scope(project="api", paths=["src/x.py", "README.md", "nowhere"])).paths == {}


async def test_a_choice_by_words_is_told_with_its_points_and_runners_up(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        scope = await p.scope(semantic_context="the login pages")
        assert scope.note == "Routed to 'web', 15 points ('hint login +10', 'concern pages +5'); next: 'api' 10."
        assert (await p.scope()).note == (
            "The call does not identify a module of 'platform', so its default_module 'api' was "
            "used. To use another, pass project=, a path inside it, or semantic_context."
        )


async def test_an_edit_follows_words_only_with_a_clear_lead(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        with pytest.raises(ToolRefused, match=r"several modules about equally \('api' 10, 'web' 10\)"):
            await p.scope(semantic_context="the login", edits=True)
        assert await p.root_of(semantic_context="the login pages", edits=True) == p.web


async def test_infrastructure_is_for_file_tools_alone(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        for path in ("docs/guide.md", "README.md", str(p.root / "docs/guide.md")):
            with pytest.raises(ToolRefused, match="infrastructure of the super-repo"):
                await p.scope(paths=[path])
            assert await p.root_of(paths=[path], about="files") == p.root
        with pytest.raises(ToolRefused, match="infrastructure of the super-repo"):
            await p.scope(paths=["docs/guide.md"], semantic_context="the pages")
        assert await p.root_of(paths=["README.md"], semantic_context="the backend") == p.api
        assert await p.root_of(paths=["README.md"], active_root=str(p.api)) == p.api
        assert await p.root_of(paths=["README.md"], project="api") == p.api
        assert await p.root_of(about="files", paths=["."]) == p.api
        assert await p.root_of(about="notes") == p.root


async def test_everything_means_all_modules_and_names_those_that_failed(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        p.world.before_build = _fail_once()
        scope = await p.scope(project="*")
        assert scope.grouped
        assert [*(project.root for project in scope.projects), *(one.name for one in scope.failures)] in (
            [p.web, "api"],
            [p.api, "web"],
        )


async def test_a_super_repo_and_its_module_of_the_same_name_are_told_apart_when_neither_opens(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        configuration = p.root / ".serena/project.yml"
        configuration.write_text(configuration.read_text().replace("web:", "platform:"))
        p.world.before_build = _fail
        scope = await p.scope(project=str(p.root), working_folder=str(tmp_path))
        assert scope.projects == []
        assert set(labels_of(scope.named).values()) == {"api", str(p.root), str(p.web)}


async def test_modules_that_are_not_there_are_said(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        assert (await p.scope(project="*")).note is None
        configuration = p.root / ".serena/project.yml"
        text = configuration.read_text()
        assert "modules:\n" in text
        configuration.write_text(text.replace("modules:\n", "modules:\n  gone: {path: modules/gone}\n"))
        for said in ({"project": "*"}, {"project": str(p.root), "working_folder": str(tmp_path)}):
            note = (await p.scope(**said)).note
            assert note is not None
            assert "'gone': path 'modules/gone' is not a folder (a submodule that is not checked out?)" in note


def _fail() -> None:
    raise ProjectRefused("broken")


def _fail_once() -> Callable[[], None]:
    failures = [ProjectRefused("broken")]

    def before_build() -> None:
        if failures:
            raise failures.pop()

    return before_build


async def test_a_super_repos_root_means_the_super_repo(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        elsewhere = {"working_folder": str(tmp_path), "project": str(p.root)}

        async def meant(**said: object) -> tuple[list[Path], bool]:
            scope = await p.scope(**elsewhere, **said)
            return [project.root for project in scope.projects], scope.grouped

        assert await meant() == ([p.api, p.web], True)
        assert (await p.scope(**elsewhere)).paths == {}
        assert await meant(semantic_context="the react pages") == ([p.api, p.web], True)
        assert await meant(about="files", paths=["."]) == ([p.api, p.web, p.root], True)
        (p.root / "tool.py").write_text("def tool() -> None: ...\n")
        assert await meant() == ([p.api, p.web, p.root], True)
        assert await meant(paths=["modules"]) == ([p.api, p.web], True)
        assert await meant(paths=["modules/api/src/x.py"]) == ([p.api], False)
        assert await meant(paths=[str(p.web / "src")]) == ([p.web], False)
        for own in ({"about": "notes"}, {"paths": ["docs/guide.md"]}, {"spans": True}):
            assert await meant(**own) == ([p.root], False)
        assert await meant(edits=True, semantic_context="the pages") == ([p.web], False)
        for words in (None, "the login"):
            with pytest.raises(ToolRefused, match=r"Nothing was changed; (name the module|pass project=)"):
                await meant(edits=True, semantic_context=words)


async def test_what_lies_beside_the_modules_of_a_folder_is_said_to_be_left_out(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        assert (await p.scope(project=str(p.root), paths=["modules"])).note is None
        (p.root / "modules/tool.py").write_text("def tool() -> None: ...\n")
        note = (await p.scope(project=str(p.root), paths=["modules"])).note
        assert (
            note == "Only modules were searched; 'modules' also contains other files, which must be named individually."
        )


@pytest.mark.parametrize("project", ["api,web", " api, web ,", ["api,web"], ["api", "web,api"], '["api", "web"]'])
async def test_several_projects_are_named_with_commas_too(tmp_path: Path, project: str | list[str]) -> None:
    async with platform(tmp_path) as p:
        scope = await p.scope(project=project)
        assert ([one.root for one in scope.projects], scope.grouped) == ([p.api, p.web], True)
        with pytest.raises(UnknownProject, match="nope"):
            await p.scope(project="api,nope")
        assert (await p.scope(project='["api"]')).projects[0].root == p.api


async def test_a_folder_with_a_comma_in_its_name_is_one_project(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        (tmp_path / "a,b" / ".git").mkdir(parents=True)
        scope = await p.scope(project=str(tmp_path / "a,b"), person=True)
        assert [one.root for one in scope.projects] == [tmp_path / "a,b"]


async def test_a_changed_configuration_counts_at_once(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        assert await p.root_of() == p.api
        p.configure("default_module: web\n")
        assert await p.root_of() == p.web
        p.configure("")
        assert await p.root_of() == p.root


async def test_modules_go_before_projects_of_the_same_name(tmp_path: Path) -> None:
    async with platform(tmp_path) as p:
        other = tmp_path / "elsewhere" / "web"
        (other / ".git").mkdir(parents=True)
        await p.world.registry.open(p.world.registry.find(str(other), PERSON))
        assert await p.root_of(project="web") == p.web
        with pytest.raises(ProjectRefused, match="2 projects are named 'web'"):
            await p.root_of(project="web", working_folder=str(other))
