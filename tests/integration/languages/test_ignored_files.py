"""Never stale where git ignores: language servers read generated files, and answer by them as they are now."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from serena_central.files import left_out
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio


class Case(NamedTuple):
    """A project in which two generated modules return a shape each: one is an ignored file, the other lies in an
    ignored folder. `uses` are where the shape's method is called, by way of each."""

    files: dict[str, str]
    symbol: str
    ignored: str
    in_folder: str
    uses: tuple[str, str]
    other: Callable[[str], str]
    """A generated text that returns another type."""


PYTHON = Case(
    {
        ".gitignore": "_made.py\n/generated/\n",
        "pyproject.toml": "[project]\nname = 'shapes'\n",
        "shapes.py": "class Shape:\n    def area(self): ...\n\n\nclass Other:\n    def area(self): ...\n",
        "_made.py": "from shapes import Other, Shape\n\n\ndef first() -> Shape: ...\n",
        "generated/api.py": "from shapes import Other, Shape\n\n\ndef second() -> Shape: ...\n",
        "main.py": "from _made import first\nfrom generated.api import second\n\nfirst().area()\nsecond().area()\n",
    },
    "Shape/area",
    "_made.py",
    "generated/api.py",
    ("main.py:3:8 -", "main.py:4:9 -"),
    lambda text: text.replace("-> Shape", "-> Other"),
)

GO = Case(
    {
        ".gitignore": "*.pb.go\n/generated/\n",
        "go.mod": "module example.com/shapes\n\ngo 1.21\n",
        "shapes/shapes.go": (
            "package shapes\n\ntype Shape struct{}\n\nfunc (Shape) Area() int { return 1 }\n\n"
            "type Other struct{}\n\nfunc (Other) Area() int { return 2 }\n"
        ),
        "main.pb.go": (
            'package main\n\nimport "example.com/shapes/shapes"\n\nfunc first() (_ shapes.Shape) { return }\n'
        ),
        "generated/api/api.go": (
            'package api\n\nimport "example.com/shapes/shapes"\n\nfunc Second() (_ shapes.Shape) { return }\n'
        ),
        "main.go": (
            'package main\n\nimport "example.com/shapes/generated/api"\n\n'
            "func main() {\n\tfirst().Area()\n\tapi.Second().Area()\n}\n"
        ),
    },
    "Shape/Area",
    "main.pb.go",
    "generated/api/api.go",
    ("main.go:5:9 main", "main.go:6:14 main"),
    lambda text: text.replace("shapes.Shape", "shapes.Other"),
)

TYPESCRIPT = Case(
    {
        ".gitignore": "*.gen.ts\n/generated/\n",
        "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, "types": []}, "include": ["src"]}',
        "src/shapes.ts": (
            "export class Shape {\n  area() { return 1; }\n}\n\nexport class Other {\n  area() { return 2; }\n}\n"
        ),
        "src/made.gen.ts": 'import { Other, Shape } from "./shapes";\n\nexport declare function first(): Shape;\n',
        "generated/api.d.ts": (
            'import { Other, Shape } from "../src/shapes";\n\nexport declare function second(): Shape;\n'
        ),
        "src/main.ts": (
            'import { first } from "./made.gen";\nimport { second } from "../generated/api";\n\n'
            "first().area();\nsecond().area();\n"
        ),
    },
    "Shape/area",
    "src/made.gen.ts",
    "generated/api.d.ts",
    ("src/main.ts:3:8 -", "src/main.ts:4:9 -"),
    lambda text: text.replace("(): Shape", "(): Other"),
)

CPP = Case(
    {
        ".gitignore": "*.gen.h\n/generated/\n",
        "compile_flags.txt": "-Iinclude\n-Igenerated\n",
        "include/shapes.h": (
            "#pragma once\n\nstruct Shape {\n  int area() const { return 1; }\n};\n\n"
            "struct Other {\n  int area() const { return 2; }\n};\n"
        ),
        "include/made.gen.h": '#pragma once\n#include "shapes.h"\n\ninline Shape first() { return {}; }\n',
        "generated/api.h": '#pragma once\n#include "shapes.h"\n\ninline Shape second() { return {}; }\n',
        "main.cpp": (
            '#include "api.h"\n#include "made.gen.h"\n\nint main() {\n  first().area();\n  return second().area();\n}\n'
        ),
    },
    "Shape/area",
    "include/made.gen.h",
    "generated/api.h",
    ("main.cpp:4:10 main", "main.cpp:5:18 main"),
    lambda text: text.replace("inline Shape", "inline Other"),
)

CASES = {"python": PYTHON, "go": GO, "typescript": TYPESCRIPT, "cpp": CPP}

IGNORED_OR_TRACKED = pytest.mark.parametrize(
    ("case", "git_ignores"),
    [
        *(pytest.param(case, True, id=f"{name}-ignored") for name, case in CASES.items()),
        *(
            pytest.param(case, False, id=f"{name}-tracked", marks=pytest.mark.slow if case is CPP else ())
            for name, case in CASES.items()
        ),
    ],
)
"""That git ignores a folder or not is asked before anything of a language is: clangd, which is slow, reads it once."""


def laid(root: Path, files: dict[str, str]) -> Path:
    (root / ".git").mkdir(parents=True)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@IGNORED_OR_TRACKED
async def test_references_follow_generated_files_that_git_ignores_or_tracks(
    tmp_path: Path, case: Case, git_ignores: bool
) -> None:
    root = laid(tmp_path / "project", case.files if git_ignores else case.files | {".gitignore": ""})
    first, second = case.uses
    ignored, in_folder = root / case.ignored, root / case.in_folder
    folder = root / "generated"

    def regenerate(path: Path, *, other: bool) -> None:
        text = case.files[path.relative_to(root).as_posix()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(case.other(text) if other else text)

    async with asker(tmp_path, root) as asked:
        assert await asked.uses(case.symbol) == [first, second]
        regenerate(ignored, other=True)
        assert await asked.uses(case.symbol) == [second]
        regenerate(in_folder, other=True)
        assert await asked.uses(case.symbol) == []
        ignored.unlink()
        regenerate(ignored, other=False)
        assert await asked.uses(case.symbol) == [first]
        folder.rename(tmp_path / "away")
        assert await asked.uses(case.symbol) == [first]
        regenerate(in_folder, other=False)
        assert await asked.uses(case.symbol) == [first, second]
        shutil.rmtree(folder)
        (tmp_path / "away").rename(folder)
        assert await asked.uses(case.symbol) == [first]
        (root / ".gitignore").write_text("")
        regenerate(in_folder, other=False)
        assert await asked.uses(case.symbol) == [first, second]


@IGNORED_OR_TRACKED
async def test_a_folder_that_was_missing_is_read_when_it_comes(tmp_path: Path, case: Case, git_ignores: bool) -> None:
    root = laid(tmp_path / "project", case.files if git_ignores else case.files | {".gitignore": ""})
    (root / "generated").rename(tmp_path / "away")
    first, second = case.uses
    async with asker(tmp_path, root) as asked:
        assert await asked.uses(case.symbol) == [first]
        (tmp_path / "away").rename(root / "generated")
        assert await asked.uses(case.symbol) == [first, second]


async def test_a_deletion_is_refused_for_a_use_that_a_generated_file_has_brought(tmp_path: Path) -> None:
    root = laid(tmp_path / "project", PYTHON.files)
    for path in (PYTHON.ignored, PYTHON.in_folder):
        (root / path).write_text(PYTHON.other(PYTHON.files[path]))
    async with asker(tmp_path, root) as asked:
        assert await asked.uses(PYTHON.symbol) == []
        (root / PYTHON.in_folder).write_text(PYTHON.files[PYTHON.in_folder])
        refused = text_of(await deleted(asked))
        assert "main.py" in refused
        assert (root / "shapes.py").read_text() == PYTHON.files["shapes.py"]


@pytest.mark.parametrize("ignored_by", ["git", "CMake"])
async def test_a_compilation_database_in_an_ignored_folder_counts_when_it_comes(
    tmp_path: Path, ignored_by: str
) -> None:
    main, command = "main.cpp", ["cc", "-Iinclude", "-c", "main.cpp"]
    files = {
        "include/shape.h": "#pragma once\nstruct Shape {};\n",
        main: '#include "shape.h"\n\nShape shape;\n',
        ".gitignore": "build/\n" if ignored_by == "git" else "",
    }
    root = laid(tmp_path / "project", files)
    async with asker(tmp_path, root) as asked:
        before = await asked.result("get_diagnostics_for_file", relative_path=main)
        assert "'shape.h' file not found" in text_of(before)
        (root / "build").mkdir()
        if ignored_by == "CMake":
            (root / "build/CMakeCache.txt").touch()
        entry = {"directory": str(root), "file": main, "arguments": command}
        (root / "build/compile_commands.json").write_text(json.dumps([entry]))
        after = await asked.result("get_diagnostics_for_file", relative_path=main)
        assert json.loads(after["content"][0]["text"]) == {main: {}}


async def test_references_follow_what_symlinks_lead_to(tmp_path: Path) -> None:
    made, elsewhere = PYTHON.files["_made.py"], tmp_path / "elsewhere.py"
    files = {name: text for name, text in PYTHON.files.items() if name in ("shapes.py", "pyproject.toml")}
    files["main.py"] = (
        "from linked import first\nfrom folder.inner import first as second\n\nfirst().area()\nsecond().area()\n"
    )
    files["inside/inner.py"] = made
    root = laid(tmp_path / "project", files)
    elsewhere.write_text(made)
    async with asker(tmp_path, root) as asked:
        assert await asked.uses("Shape/area") == []
        (root / "linked.py").symlink_to(elsewhere)
        (root / "folder").symlink_to("inside")
        assert await asked.uses("Shape/area") == ["main.py:3:8 -", "main.py:4:9 -"]
        elsewhere.write_text(PYTHON.other(made))
        assert await asked.uses("Shape/area") == ["main.py:4:9 -"]
        (root / "inside/inner.py").write_text(PYTHON.other(made))
        assert await asked.uses("Shape/area") == []
        (root / "linked.py").unlink()
        (root / "linked.py").symlink_to("inside/again.py")
        (root / "inside/again.py").write_text(made)
        assert await asked.uses("Shape/area") == ["main.py:3:8 -"]


async def deleted(asked: Asker) -> dict[str, object]:
    return await asked.result("safe_delete_symbol", name_path_pattern="Shape/area", relative_path="shapes.py")


@pytest.mark.parametrize(("closed", "named"), [(False, "generated/deep/deeper/"), (True, "what rules close")])
async def test_what_is_too_much_to_follow_is_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: bool, named: str
) -> None:
    monkeypatch.setattr(left_out, "MOST_FOLDERS", 2)
    root = laid(tmp_path / "project", PYTHON.files)
    if closed:
        (root / ".claude").mkdir()
        denied = {"permissions": {"deny": ["Read(./generated/deep/**)"]}}
        (root / ".claude/settings.json").write_text(json.dumps(denied))
    (root / "generated/deep/deeper").mkdir(parents=True)
    async with asker(tmp_path, root) as asked:
        with anyio.fail_after(60):
            results = [await asked.result("find_symbol", name_path_pattern="Shape") for _ in range(2)]
    notes = ["\n".join(part["text"] for part in result["content"][1:]) for result in results]
    assert "Not watched" in notes[0]
    assert named in notes[0]
    assert ("deeper" in notes[0]) is not closed
    assert "Not watched" not in notes[1]
