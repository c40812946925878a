"""Projects of several modules, of several languages, and of none: what is started for them, and what they answer."""

import json
import logging
from pathlib import Path

import pytest

from serena_central.core.places import Places
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.install import install
from tests.integration.languages.cases import CPP, PYTHON, TYPESCRIPT
from tests.support.languages import Asker, asker, copy_of

pytestmark = pytest.mark.anyio


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def module(root: Path, folder: str, name: str, code: str, *, needs: str = "") -> None:
    """A Go module with one file; `needs` is another module that only a go.work can lead to."""
    require = f"\nrequire example.com/{needs} v0.0.0\n" if needs else ""
    write(root / folder, **{"go.mod": f"module example.com/{name}\n\ngo 1.21\n{require}", f"{name}.go": code})


LIBRARY = "package lib\n\nfunc Shared() int { return 1 }\n\nfunc Own() int { return Shared() }\n"
PROGRAM = 'package main\n\nimport "example.com/lib"\n\nfunc main() { println(lib.Shared()) }\n'
OTHER = "package other\n\nfunc Other() int { return 1 }\n\nfunc Use() int { return Other() }\n"


def super_repository(root: Path) -> None:
    """Two modules that refer to each other below folders of their own, one that stands alone, and a stray file."""
    module(root, "modules/lib/backend", "lib", LIBRARY)
    module(root, "modules/app/backend", "app", PROGRAM, needs="lib")
    module(root, "tools/other", "other", OTHER)
    write(root, **{"stray/stray.go": "package stray\n\nfunc Stray() {}\n"})


def servers(asked: Asker) -> list[tuple[str, int]]:
    """Name of each server that was ever started, and how often."""
    return sorted((shown.server, shown.run) for shown in asked.central.central.pool.snapshot())


async def test_modules_are_folders_of_one_gopls_and_a_stray_file_starts_nothing(tmp_path: Path) -> None:
    super_repository(tmp_path / "super")
    async with asker(tmp_path, tmp_path / "super") as asked:
        stray = await asked.result("get_symbols_overview", relative_path="stray/stray.go")
        answer, note = (part["text"] for part in stray["content"])
        assert json.loads(answer) == {"Function": ["Stray"]}
        assert note.startswith("By syntax only"), note
        assert "not in a Go module" in note
        refused = await asked.result("find_referencing_symbols", name_path="Stray", relative_path="stray/stray.go")
        assert "not in a Go module" in refused["content"][0]["text"]
        assert await asked.uses("Shared", "modules/lib/backend/lib.go") == ["modules/lib/backend/lib.go:4:24 Own"]
        assert await asked.uses("Other", "tools/other/other.go") == ["tools/other/other.go:4:24 Use"]
        assert servers(asked) == [("gopls", 1)]


async def test_a_go_work_joins_modules_of_the_project_and_none_outside_of_it_does(tmp_path: Path) -> None:
    root = tmp_path / "super"
    super_repository(root)
    write(root, **{"go.work": "go 1.21\n\nuse (\n\t./modules/lib/backend\n\t./modules/app/backend\n)\n"})
    async with asker(tmp_path, root) as asked:
        assert await asked.uses("Shared", "modules/lib/backend/lib.go") == [
            "modules/app/backend/app.go:4:26 main",
            "modules/lib/backend/lib.go:4:24 Own",
        ]
        assert await asked.uses("Other", "tools/other/other.go") == ["tools/other/other.go:4:24 Use"]
        alone = root / "modules/app/backend"
        await asked.result("activate_project", project=str(alone))
        faults = await asked.result("get_diagnostics_for_file", relative_path="app.go")
        assert "could not import example.com/lib" in faults["content"][0]["text"]


@pytest.mark.parametrize("work", ["", "go 1.21\n\nuse ./lib\n"])
async def test_uses_in_a_go_module_that_no_go_work_joins_are_missed_aloud_and_keep_a_rename_away(
    tmp_path: Path, work: str
) -> None:
    root = tmp_path / "super"
    module(root, "lib", "lib", LIBRARY)
    module(root, "app", "app", PROGRAM, needs="lib")
    with (root / "app/go.mod").open("a") as manifest:
        manifest.write("\nreplace example.com/lib => ../lib\n")
    if work:
        write(root, **{"go.work": work})
    async with asker(tmp_path, root) as asked:
        place = {"name_path": "Shared", "relative_path": "lib/lib.go"}
        found = await asked.result("find_referencing_symbols", **place)
        answer, note = (part["text"] for part in found["content"])
        assert "lib/lib.go" in json.loads(answer)
        assert "Shared also occurs in app/app.go of modules that depend on this one by path" in note
        for tool in ("dependency_graph", "find_unused_symbols"):
            assert "Shared also occurs in app/app.go of modules" in (await asked.result(tool))["content"][-1]["text"]
        renamed = await asked.result("rename_symbol", **place, new_name="Common")
        assert renamed["isError"]
        assert "app/app.go" in renamed["content"][0]["text"]
        write(root, **{"go.work": "go 1.21\n\nuse (\n\t./lib\n\t./app\n)\n"})
        assert await asked.uses("Shared", "lib/lib.go") == ["app/app.go:4:26 main", "lib/lib.go:4:24 Own"]


async def test_uses_in_a_cargo_package_that_no_workspace_joins_are_missed_aloud(tmp_path: Path) -> None:
    root = tmp_path / "crates"
    package = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
    write(
        root,
        **{
            "lib/Cargo.toml": package.format("lib"),
            "lib/src/lib.rs": "pub fn shared() -> i32 { 1 }\n\npub fn own() -> i32 { shared() }\n",
            "app/Cargo.toml": package.format("app") + '\n[dependencies]\nlib = { path = "../lib" }\n',
            "app/src/main.rs": "fn main() { let _ = lib::shared() + lib::own(); }\n",
        },
    )
    async with asker(tmp_path, root) as asked:
        found = await asked.result("find_referencing_symbols", name_path="shared", relative_path="lib/src/lib.rs")
        answer, note = (part["text"] for part in found["content"])
        # The place itself, asked about alone, leads to the definition; others may be missed all the same.
        assert list(json.loads(answer)) == ["app/src/main.rs", "lib/src/lib.rs"], found["content"]
        assert "shared also occurs in app/src/main.rs of modules that depend on this one by path" in note
        for depth, names in ((1, "shared also occurs"), (2, "2 names (own, …) also occur")):
            called = await asked.result(
                "get_call_hierarchy", name_path="shared", relative_path="lib/src/lib.rs", depth=depth
            )
            assert f"{names} in app/src/main.rs of modules" in called["content"][-1]["text"]


async def test_a_go_work_is_no_source_and_what_it_joins_warms_up_and_is_indexed_whole(tmp_path: Path) -> None:
    root = tmp_path / "super"
    super_repository(root)
    write(root, **{"go.work": "go 1.21\n\nuse (\n\t./modules/lib/backend\n\t./modules/app/backend\n)\n"})
    (root / "stray/stray.go").unlink()
    async with asker(tmp_path, root) as asked:
        warmed = await asked.project.warm()
        assert [(one.language, one.success, one.error) for one in warmed] == [("go", True, None)]
        assert sorted(asked.project.index.paths()) == [
            "modules/app/backend/app.go",
            "modules/lib/backend/lib.go",
            "tools/other/other.go",
        ]
        assert servers(asked) == [("gopls", 1), ("gopls", 1)]
        assert await asked.ask("get_symbols_overview", relative_path=".") == {
            "modules/app/backend/app.go": {"Function": ["main"]},
            "modules/lib/backend/lib.go": {"Function": ["Shared", "Own"]},
            "tools/other/other.go": {"Function": ["Other", "Use"]},
        }


async def test_a_module_that_can_not_be_loaded_is_told_with_the_answer(tmp_path: Path) -> None:
    root = tmp_path / "new"
    write(root, **{"go.mod": "module example.com/new\n\ngo 1.999\n", "new.go": OTHER.replace("other", "new")})
    async with asker(tmp_path, root) as asked:
        answer = await asked.result("find_referencing_symbols", name_path="Other")
        assert "requires go >= 1.999" in answer["content"][-1]["text"]


async def test_languages_of_one_project_start_when_needed_and_fail_each_alone(tmp_path: Path) -> None:
    root = tmp_path / "mixed"
    for name in ("python", "go", "rust"):
        copy_of(name, root)
    async with asker(tmp_path, root, broken="rust-analyzer") as asked:
        assert await asked.ask("get_symbols_overview", relative_path="python/report.py")
        found = await asked.result("find_symbol", name_path_pattern="report")
        answer, *notes = (part["text"] for part in found["content"])
        paths = ["go/cmd/report/main.go", "python/report.py", "rust/src/main.rs"]
        assert sorted(one["relative_path"] for one in json.loads(answer)) == paths
        assert any("rust-analyzer did not start: it exited with code 3" in note for note in notes), notes
        assert await asked.uses("total", "python/shapes/base.py")
        assert await asked.uses("Total", "go/shapes/shapes.go")
        refused = await asked.result("find_declaration", relative_path="rust/src/main.rs", regex=r"size = (total)")
        assert refused["isError"]
        assert "rust-analyzer" in refused["content"][0]["text"]


@pytest.mark.parametrize("server", ["pyrefly", "basedpyright"])
async def test_another_python_server_by_setting(tmp_path: Path, server: str) -> None:
    root = copy_of("python", tmp_path)
    async with asker(tmp_path, root, {"language_servers": {"python": server}}) as asked:
        cold = await asked.uses(PYTHON.name, PYTHON.file)
        places = {use.split(" ")[0] for use in PYTHON.references if not use.endswith("-")}
        assert {use.split(" ")[0] for use in cold} >= places  # imports count to some, and not to others
        assert await asked.uses(PYTHON.name, PYTHON.file) == cold
        (found,) = await asked.ask("find_symbol", name_path_pattern="Tile/area")
        assert (found["relative_path"], found["body_location"]["start_line"]) == ("shapes/square.py", 12)
        assert servers(asked) == [(server, 1)]


TYPESCRIPT_PACKAGE = '{"compilerOptions": {"module": "nodenext", "strict": true, "noEmit": true}, "include": ["src"]}'


async def test_uses_in_other_packages_of_a_typescript_monorepo_are_found(tmp_path: Path) -> None:
    root = tmp_path / "mono"
    use = "import { shared } from '@x/lib';\nshared();\n"
    write(
        root,
        **{
            "package.json": '{"private": true, "workspaces": ["packages/*"]}',
            "packages/lib/package.json": '{"name": "@x/lib", "type": "module", "exports": "./src/index.ts"}',
            "packages/lib/tsconfig.json": TYPESCRIPT_PACKAGE,
            "packages/lib/src/index.ts": "export function shared() {}\n",
            "packages/lib/test/own.ts": "import { shared } from '../src/index.js';\nshared();\n",
            "packages/app/package.json": '{"name": "@x/app", "type": "module"}',
            "packages/app/tsconfig.json": TYPESCRIPT_PACKAGE,
            "packages/app/src/use.ts": use,
        },
    )
    (root / "node_modules/@x").mkdir(parents=True)
    (root / "node_modules/@x/lib").symlink_to("../../packages/lib")
    async with asker(tmp_path, root) as asked:
        assert await asked.uses("shared", "packages/lib/src/index.ts") == [
            "packages/app/src/use.ts:0:9 -",
            "packages/app/src/use.ts:1:0 -",
            "packages/lib/test/own.ts:0:9 -",
            "packages/lib/test/own.ts:1:0 -",
        ]
        assert servers(asked) == [("typescript", 1)]


async def test_uses_in_javascript_without_any_configuration_are_found(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, **{"a.js": "export function shared() {}\n", "b.js": "import { shared } from './a.js';\nshared();\n"})
    async with asker(tmp_path, root) as asked:
        assert await asked.uses("shared") == ["b.js:0:9 -", "b.js:1:0 -"]


@pytest.mark.parametrize("where", ["build/compile_commands.json", "compile_flags.txt"])
async def test_what_says_how_to_compile_is_found_wherever_it_usually_lies(tmp_path: Path, where: str) -> None:
    root = copy_of(CPP.language, tmp_path, compile_commands=CPP.compile_commands)
    commands = root / "compile_commands.json"
    (root / where).parent.mkdir(exist_ok=True)
    if where.endswith("txt"):
        commands.unlink()
        (root / where).write_text("-Iinclude\n")
    else:
        commands.rename(root / where)
        write(root, **{".gitignore": "build/\n"})
    async with asker(tmp_path, root) as asked:
        assert await asked.uses(CPP.name, CPP.file) == list(CPP.references)


async def test_without_a_compilation_database_uses_and_renames_say_what_they_may_lack(tmp_path: Path) -> None:
    root = copy_of(CPP.language, tmp_path)
    async with asker(tmp_path, root) as asked:
        place = {"name_path": CPP.name, "relative_path": CPP.file}
        used = await asked.result("find_referencing_symbols", **place)
        assert "without a compilation database" in used["content"][-1]["text"]
        for tool in ("dependency_graph", "find_unused_symbols", "check_references"):
            assert "without a compilation database" in (await asked.result(tool))["content"][-1]["text"]
        renamed = await asked.result("rename_symbol", **place, new_name="renamed_by_test", dry_run=True)
        assert not renamed["isError"], renamed
        assert "without a compilation database" in renamed["content"][-1]["text"]


@pytest.mark.slow
async def test_typescript_5_by_setting(tmp_path: Path) -> None:
    spec = catalogue().server("typescript-language-server")
    root = copy_of("typescript", tmp_path)
    places = Places(tmp_path / "installed")
    await install(spec, places, tell=logging.getLogger(__name__).info)
    async with asker(tmp_path, root, {"language_servers": {"typescript": spec.name}}, more=places.servers) as asked:
        cold = await asked.uses(TYPESCRIPT.name, TYPESCRIPT.file)
        assert {use.split(" ")[0] for use in cold} == {use.split(" ")[0] for use in TYPESCRIPT.references}
        assert await asked.uses(TYPESCRIPT.name, TYPESCRIPT.file) == cold
        (found,) = await asked.ask("find_symbol", name_path_pattern="Tile/area")
        assert (found["relative_path"], found["body_location"]["start_line"]) == ("src/square.ts", 11)
        assert servers(asked) == [(spec.name, 1)]
