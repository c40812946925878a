"""What a change breaks in files that it does not touch is found since a revision, in each language's own way."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.languages import asker

pytestmark = pytest.mark.anyio

TSCONFIG = '{"extends": "./tsconfig.base.json", "include": ["src"]}'
ALIASED = '{"compilerOptions": {"strict": true, "noEmit": true, "paths": {"@lib/*": ["./src/parts/*"]}}}'
GO_MOD = "module example.com/shop\n\ngo 1.21\n"


class Change(NamedTuple):
    """Files before, those that are written or (None) removed, and `path:line` of what that breaks."""

    before: Mapping[str, str]
    now: Mapping[str, str | None]
    broken: list[str]


PACKAGE = {"pkg/__init__.py": "", "pkg/a.py": "def hello() -> int:\n    return 1\n" * 9, "far.py": "def far(): ...\n"}

CHANGES = {
    "a renamed file": Change(
        PACKAGE | {"use.py": "from pkg.a import hello\n\nhello()\n"},
        {"pkg/a.py": None, "pkg/c.py": PACKAGE["pkg/a.py"]},
        ["use.py:1"],
    ),
    "names handed on by a star": Change(
        PACKAGE | {"pkg/__init__.py": "from .a import *\n", "use.py": "from pkg import hello\n\nhello()\n"},
        {"pkg/a.py": "def other() -> int:\n    return 1\n"},
        ["use.py:1"],
    ),
    "a member by way of a factory": Change(
        {
            "stone.py": "class Stone:\n    def cut(self) -> int:\n        return 1\n",
            "quarry.py": "from stone import Stone\n\n\ndef make() -> Stone:\n    return Stone()\n",
            "use.py": "from quarry import make\n\nmake().cut()\n",
        },
        {"stone.py": "class Stone:\n    def saw(self) -> int:\n        return 1\n"},
        ["use.py:3"],
    ),
    "Go, in the same package": Change(
        {
            "go.mod": GO_MOD,
            "a.go": "package shop\n\nfunc Hello() int { return 1 }\n",
            "b.go": "package shop\n\nfunc Use() int { return Hello() }\n",
        },
        {"a.go": "package shop\n\nfunc Hi() int { return 1 }\n"},
        ["b.go:3"],
    ),
    "Go, from another package": Change(
        {
            "go.mod": GO_MOD,
            "a/names.go": "package a\n\nfunc Hello() int { return 1 }\n",
            "b/b.go": 'package b\n\nimport "example.com/shop/a"\n\nfunc Use() int { return a.Hello() }\n',
        },
        {"a/names.go": "package a\n\nfunc Hi() int { return 1 }\n"},
        ["b/b.go:5"],
    ),
    "Go, a module that go.mod replaces no more": Change(
        {
            "go.mod": GO_MOD + "\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n",
            "other/go.mod": "module example.com/other\n",
            "other/other.go": "package other\n\nfunc Hello() int { return 1 }\n",
            "b.go": 'package shop\n\nimport "example.com/other"\n\nfunc Use() int { return other.Hello() }\n',
        },
        {"go.mod": GO_MOD},
        ["b.go:3"],
    ),
    "TypeScript, names handed on by a star": Change(
        {
            "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["src"]}',
            "src/lib/a.ts": "export function hello(): number {\n  return 1;\n}\n",
            "src/lib/all.ts": 'export * from "./a";\n',
            "src/use.ts": 'import { hello } from "./lib/all";\n\nhello();\n',
        },
        {"src/lib/a.ts": "export function hi(): number {\n  return 1;\n}\n"},
        ["src/use.ts:1"],
    ),
    "TypeScript, an alias in the configuration that another extends": Change(
        {
            "tsconfig.json": TSCONFIG,
            "tsconfig.base.json": ALIASED,
            "src/parts/a.ts": "export const hello = 1;\n",
            "src/use.ts": 'import { hello } from "@lib/a";\n\nconsole.assert(hello);\n',
        },
        {"tsconfig.base.json": ALIASED.replace("@lib", "@other")},
        ["src/use.ts:1"],
    ),
}


def write(root: Path, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "before")


@pytest.mark.parametrize("name", CHANGES)
async def test_what_a_change_breaks_elsewhere_is_found_since_a_revision(tmp_path: Path, name: str) -> None:
    change, root = CHANGES[name], tmp_path / "project"
    write(root, change.before)
    commit(root)
    write(root, change.now)
    async with asker(tmp_path, root) as asked:
        result = await asked.result("check_references", since="HEAD", paths=list(change.now), possible=True)
    found = [
        one for one in json.loads(result["content"][0]["text"])["broken"] if one["new"] or one["certainty"] == "certain"
    ]
    places = sorted({f"{one['path']}:{one['line'] + 1}" for one in found})
    assert places == change.broken, result["content"]


async def test_how_many_files_were_not_looked_at_is_said(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write(root, PACKAGE)
    commit(root)
    write(root, {"pkg/a.py": ""})
    async with asker(tmp_path, root) as asked:
        result = await asked.result("check_references", since="HEAD", paths=["pkg/a.py"])
    assert json.loads(result["content"][0]["text"])["checked"] == 1
    assert "2 files not checked" in result["content"][1]["text"]


@pytest.mark.parametrize("submodule", [False, True])
async def test_what_one_module_lost_is_new_in_another_since_a_revision_of_the_super_repo(
    tmp_path: Path, *, submodule: bool
) -> None:
    root, core = tmp_path / "project", tmp_path / "core"
    stone = "class Stone:\n    def cut(self) -> int:\n        return 1\n"
    write(core, {"core/__init__.py": "", "core/stone.py": stone})
    yml = "type: super-repo\nmodules: {core: {path: core}, api: {path: api}}\n"
    use = "from core.stone import Stone\n\nprint(Stone().cut())\n"
    paths = "[environment]\nextra-paths = ['../core']\n"
    write(root, {".serena/project.yml": yml, "api/use.py": use, "api/ty.toml": paths})
    git(tmp_path, "init", "--quiet", str(root))
    if submodule:
        commit(core)
        git(root, "submodule", "--quiet", "add", str(core), "core")
    else:
        write(root, {"core/core/__init__.py": "", "core/core/stone.py": stone})
    commit(root)
    git(root, "tag", "before")
    write(root, {"core/core/stone.py": stone.replace("cut", "saw")})
    async with asker(tmp_path, root) as asked:
        result = await asked.result("check_references", since="before", paths=["core/core/stone.py"])
        alone = await asked.result("check_references", since="before", project=str(root / "api"))
    broken = json.loads(result["content"][0]["text"])["broken"]
    assert [(one["path"], one["line"], one["new"]) for one in broken] == [("api/use.py", 2, True)], result["content"]
    broken = json.loads(alone["content"][0]["text"])["broken"]
    assert [(one["path"], one["line"], one["new"]) for one in broken] == [("use.py", 2, True)], alone["content"]


async def test_that_a_module_of_another_repository_was_not_compared_is_said(tmp_path: Path) -> None:
    root, api = tmp_path / "project", tmp_path / "project" / "api"
    write(root, {".serena/project.yml": "type: super-repo\nmodules: {core: {path: core}, api: {path: api}}\n"})
    write(root, {"core/stone.py": "def cut() -> int:\n    return 1\n"})
    write(api, {"use.py": "print(1)\n"})
    commit(api)
    commit(root)
    async with asker(tmp_path, root) as asked:
        result = await asked.result("check_references", since="HEAD", project=str(api))
    assert "Changes since 'HEAD' in modules outside 'api' were not checked" in str(result["content"])
