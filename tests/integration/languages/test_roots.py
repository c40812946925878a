"""Projects of several modules, of several languages, and of none: what is started for them, and what they answer."""

import json
from pathlib import Path

import pytest

from tests.integration.languages.cases import PYTHON
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
        refused = await asked.result("get_symbols_overview", relative_path="stray/stray.go")
        assert "in no Go module" in refused["content"][0]["text"]
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
        faults = await asked.ask("get_diagnostics_for_file", relative_path="app.go")
        assert "could not import example.com/lib" in str(faults)


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
        answer, *remarks = (part["text"] for part in found["content"])
        assert sorted(one["relative_path"] for one in json.loads(answer)) == [
            "go/cmd/report/main.go",
            "python/report.py",
        ]
        assert any("rust-analyzer did not start: it ended with exit code 3" in remark for remark in remarks), remarks
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
