"""What becomes of servers when the settings of a project change."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import LanguageServerError, ServerNotTrusted
from serena_central.files.boundary import OPEN
from serena_central.files.path_watch import PathWatch
from serena_central.files.stamp import RACY_NS
from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.locate import Launch, locate
from serena_central.projects.languages import server_availability
from serena_central.projects.languages.project_languages import ProjectLanguages
from tests.support.registries import Registered

pytestmark = pytest.mark.anyio


def languages(world: Registered, root: Path, **chosen: Any) -> ProjectLanguages:
    return ProjectLanguages(root, world.pool, world.places, trusted=True, access=OPEN, chosen=chosen)


@pytest.mark.parametrize(
    ("chosen", "stays"),
    [
        ({}, True),
        ({"go": {"memory_mb": 5}}, True),
        ({"python": {"settings": {"ty": {"a": 1}}}}, False),
        ({"ty": {"launch": {"env": {"A": "1"}}}}, False),
        ({"python": "pyrefly"}, False),
    ],
)
async def test_a_server_stays_unless_what_was_said_of_it_changed(
    tmp_path: Path, chosen: dict[str, Any], stays: bool
) -> None:
    world = Registered(tmp_path)
    before = languages(world, tmp_path)
    spec = before.spec_for("a.py")
    assert spec
    wanted = before.orders.order(spec, "a.py")
    assert (languages(world, tmp_path, **chosen).orders.key_now(wanted) == wanted.key) is stays


async def test_what_has_no_effect_is_among_the_problems(tmp_path: Path) -> None:
    world = Registered(tmp_path)
    made = ProjectLanguages(
        tmp_path,
        world.pool,
        world.places,
        trusted=True,
        access=OPEN,
        languages=["cobol", "golang"],
        chosen={"python": "tie"},
    )
    assert [problem.key for problem in made.selection.problems] == ["python", "languages"]
    assert made.language_of("a.go") == "go"
    assert made.language_of("a.py") is None


class Fetching:
    """Notes what is to be installed."""

    def __init__(self) -> None:
        self.wanted: list[str] = []

    def want(self, spec: ServerSpec) -> str | None:
        self.wanted.append(spec.name)
        return "on its way"

    def standing(self, spec: ServerSpec) -> str | None:
        return "on its way" if spec.name in self.wanted else None

    def expected(self, spec: ServerSpec) -> bool:
        return True

    async def settled(self, spec: ServerSpec) -> bool:
        return False


@pytest.mark.parametrize(
    ("trusted", "chosen", "fetched"),
    [
        (False, {}, ["typescript"]),
        (False, {"typescript": "typescript-language-server"}, []),
        (False, {"typescript": "deno"}, []),
        (True, {"typescript": "typescript-language-server"}, ["typescript-language-server"]),
    ],
)
async def test_nothing_is_fetched_that_only_an_untrusted_project_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool, chosen: dict[str, Any], fetched: list[str]
) -> None:
    world, fetching = Registered(tmp_path), Fetching()
    monkeypatch.setenv("PATH", str(tmp_path))
    made = ProjectLanguages(
        tmp_path, world.pool, world.places, trusted=trusted, access=OPEN, chosen=chosen, installations=fetching
    )
    await made.until_installed("a.ts")
    assert fetching.wanted[:1] == fetched


async def test_nobody_is_told_to_install_what_the_background_will_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, fetching = Registered(tmp_path), Fetching()
    monkeypatch.setenv("PATH", str(tmp_path))
    made = ProjectLanguages(tmp_path, world.pool, world.places, trusted=False, access=OPEN, installations=fetching)
    assert "not installed yet; the background installs it" in made.standing("a.ts")
    await made.until_installed("a.ts")
    assert made.standing("a.ts") == "on its way"


async def test_symbols_of_a_restricted_server_are_not_taken_for_those_of_a_trusted_one(tmp_path: Path) -> None:
    world = Registered(tmp_path)
    both = [
        ProjectLanguages(tmp_path, world.pool, world.places, trusted=trusted, access=OPEN) for trusted in (True, False)
    ]
    specs = [one.spec_for("a.py") for one in both]
    keys = [one.orders.order(spec, "a.py").key for one, spec in zip(both, specs, strict=True) if spec]
    assert keys[0] != keys[1]
    assert both[0].identity("a.py") != both[1].identity("a.py")


async def test_what_is_not_run_for_lack_of_trust_is_never_fetched_and_says_so(tmp_path: Path) -> None:
    world, fetching = Registered(tmp_path), Fetching()
    made = ProjectLanguages(tmp_path, world.pool, world.places, trusted=False, access=OPEN, installations=fetching)
    (tmp_path / "rust-project.json").touch()
    for path in ("a.rs", "A.java"):
        assert not await made.until_installed(path)
        assert not made.is_installed(path)
        with pytest.raises(ServerNotTrusted):
            await made.ask(path, lambda _: _never())
    assert fetching.wanted == []
    (tmp_path / "rust-project.json").unlink()
    with pytest.raises(LanguageServerError) as after:
        await made.ask("a.rs", lambda _: _never())
    assert not isinstance(after.value, ServerNotTrusted)


async def _never() -> None:
    raise AssertionError("no server runs")


async def test_a_missing_program_is_looked_for_once_in_a_while_and_found_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Registered(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    made = languages(world, tmp_path, typescript="deno")
    said = made.standing("a.ts")
    looked: list[str] = []

    def noted(spec: ServerSpec, *args: Any, **options: Any) -> Launch:
        looked.append(spec.name)
        return locate(spec, *args, **options)

    monkeypatch.setattr(server_availability, "locate", noted)
    program = tmp_path / "deno"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert [made.standing("a.ts") for _ in range(3)] == [said] * 3
    assert looked == []
    monkeypatch.setattr(server_availability, "LOOK_AGAIN_S", 0.0)
    assert made.standing("a.ts") != said
    assert looked == ["deno"]


async def test_what_configures_a_language_is_its_file_and_holds_no_symbols(tmp_path: Path) -> None:
    made = languages(Registered(tmp_path), tmp_path)
    assert {made.language_of(name) for name in ("go.mod", "sub/go.work", "a.go")} == {"go"}
    assert [name for name in ("go.mod", "sub/go.work", "a.go") if made.is_searched(name)] == ["a.go"]
    assert made.is_code("a.mli")


async def test_only_files_of_a_watched_root_are_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, library = tmp_path / "root", tmp_path / "library.py"
    root.mkdir()
    inside = root / "a.py"
    made = languages(Registered(tmp_path), root)
    for file in (inside, library):
        file.write_text("a = 1\n")
        os.utime(file, (1, 1))
    await anyio.sleep(RACY_NS / 1e9)
    for file in (inside, library):
        made.read(file)
    assert not made.are_at_hand([inside])
    tree = FileTree(root, Watches())
    made.texts.follow(tree)
    monkeypatch.setattr(FileTree, "is_watched", True)
    assert made.are_at_hand([inside])
    assert not made.are_at_hand([inside, library]), "its file system may hang"


async def test_only_servers_that_may_belong_to_a_project_above_their_root_are_looked_up_at_each_call(
    tmp_path: Path,
) -> None:
    world, asked = Registered(tmp_path), list[Any]()
    made = ProjectLanguages(tmp_path, world.pool, world.places, trusted=True, access=OPEN, chosen={"python": "ty"})

    class Noting(PathWatch):
        def get(self, key: Any, paths: Any, make: Any) -> Any:
            asked.append(key)
            return make()

    for path in ("a.go", "a.py"):
        spec = made.spec_for(path)
        assert spec is not None
        made.orders.meaning(spec)
    assert not made.orders.reach_changed(Noting())
    assert [name for _, name, _ in asked] == ["ty"]
