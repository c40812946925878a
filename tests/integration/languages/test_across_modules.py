"""Never stale across modules: after each of many random edits of one module, what is said of the modules that use it is
what their own compilers say."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import anyio.to_thread
import pytest

from serena_central.projects.project import Project
from tests.integration.languages.test_renamed_members import CARGO, written
from tests.support.compiled import GO, KITS, TYPESCRIPT, Kit, Repository
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of
from tests.support.superrepo import PAIRS, platform

pytestmark = pytest.mark.anyio

SHAPES = {
    "assets/backend/store/shape.go": (
        "package store\n\ntype Shape interface{ Area() int }\n\n"
        "type Own struct{}\n\nfunc (Own) Area() int { return 1 }\n"
    ),
    "chariot/backend/cmd/square.go": (
        "package main\n\ntype Square struct{}\n\nfunc (Square) Area() int { return Serve() }\n"
    ),
    "ui/package.json": (
        '{"name": "@platform/ui", "type": "module", "exports": {".": "./src/total.ts", "./shape": "./src/shape.ts"}}'
    ),
    "ui/src/shape.ts": (
        "export interface Shape { area(): number }\nexport class Own implements Shape { area() { return 1; } }\n"
    ),
    "web/src/square.ts": (
        'import type { Shape } from "@platform/ui/shape";\n\n'
        "export class Square implements Shape { area() { return 2; } }\n"
    ),
    "scoring/scoring/shape.py": "class Shape: ...\n\n\nclass Own(Shape): ...\n",
    "scan/scan/square.py": (
        "from scoring.shape import Own, Shape\n\n\nclass Square(Shape): ...\n\n\nclass Small(Own): ...\n"
    ),
    "engine/src/shape.rs": (
        "pub trait Shape { fn area(&self) -> i32; }\npub struct Own;\n"
        "impl Shape for Own { fn area(&self) -> i32 { 1 } }\n"
    ),
    "nose/src/square.rs": (
        "use match_engine::shape::Shape;\npub struct Square;\nimpl Shape for Square { fn area(&self) -> i32 { 2 } }\n"
    ),
}
"""In each pair of modules a `Shape`, and who implements it there and in the sibling, where Go's does not name it."""

EVERY_KIT = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.language)

Edit = Callable[[Random], str]


async def said(asked: Asker, project: Path, prefix: str) -> set[str]:
    """Files of a project with broken references; their names begin with `prefix`."""
    answer = await asked.ask("check_references", project=str(project), possible=True)
    return {prefix + one["path"] for one in answer["broken"]}


async def by_tool(asked: Asker, repository: Repository, random: Random) -> str:
    place, name = random.choice(repository.symbols())
    new = repository.new_name(name)
    arguments: dict[str, Any] = {"needle": rf"\b{name}\b", "repl": new, "mode": "regex"}
    path = str((repository.root / place).relative_to(repository.contracts))
    answer = await asked.result(
        "replace_content",
        project=str(repository.contracts),
        relative_path=path,
        allow_multiple_occurrences=True,
        **arguments,
    )
    assert not answer["isError"], answer
    return f"tool: {name} of {place} is {new}"


async def agree(tmp_path: Path, kit: Kit, edits: int, seed: int, *, one_project: bool = False) -> None:
    repository = Repository(kit, tmp_path)
    random = Random(seed)
    outside: list[Edit] = [repository.rename_by_sed, repository.move, repository.check_out, repository.delete]
    settings = {"included_optional_tools": ["check_references"]}
    async with asker(tmp_path, repository.root, settings) as asked:
        done: list[str] = []
        for number in range(edits + 1):
            if not repository.symbols():
                repository.git("checkout", "--quiet", ".")
            if number and random.random() < 0.25:
                done.append(await by_tool(asked, repository, random))
            elif number:
                done.append(random.choice(outside)(random))
            expected = await anyio.to_thread.run_sync(repository.broken)
            if one_project:
                assert await said(asked, repository.root, "") == set().union(*expected.values()), done
                continue
            for module in repository.modules():
                assert await said(asked, module, f"{module.name}/") == expected[module.name], (module.name, done)


@pytest.mark.parametrize(
    "kit",
    [pytest.param(kit, marks=pytest.mark.slow if kit.language in ("go", "rust") else ()) for kit in KITS],
    ids=lambda kit: kit.language,
)
async def test_what_is_said_of_a_module_is_what_its_compiler_says(kit: Kit, tmp_path: Path) -> None:
    await agree(tmp_path, kit, edits=12, seed=1)


@pytest.mark.parametrize("kit", [pytest.param(GO, marks=pytest.mark.slow), TYPESCRIPT], ids=lambda kit: kit.language)
async def test_it_is_so_where_all_modules_are_one_project(kit: Kit, tmp_path: Path) -> None:
    await agree(tmp_path, kit, edits=12, seed=3, one_project=True)


@pytest.mark.slow
@EVERY_KIT
async def test_it_is_so_after_fifty_edits_of_each_language(kit: Kit, tmp_path: Path) -> None:
    await agree(tmp_path, kit, edits=50, seed=2)


def opened(asked: Asker, root: Path) -> Project:
    project = asked.central.central.projects.opened(str(root))
    assert project is not None
    return project


async def of_all(asked: Asker, tool: str, part: str, **arguments: Any) -> dict[str, list[str]]:
    """Module → names that it answers with; without modules that have none."""
    result = await asked.result(tool, name_path="Shape", project="*", **arguments)
    assert not result["isError"], result
    answers = json.loads(result["content"][0]["text"])
    assert not [answer for answer in answers.values() if "error" in answer], answers
    names = {module: _names(answer.get(part, answer) if part else answer, part) for module, answer in answers.items()}
    return {module: found for module, found in names.items() if found}


def _names(nodes: Any, part: str) -> list[str]:
    if not isinstance(nodes, list):
        return []
    return [name for node in nodes for name in (node.get("name") or node["name_path"], *_names(node.get(part), part))]


async def test_who_implements_a_symbol_is_found_in_the_modules_that_read_it(tmp_path: Path) -> None:
    root = platform(tmp_path)
    for path, text in SHAPES.items():
        (root / "modules" / path).write_text(text)
    for module, name in (("engine", "shape"), ("nose", "square")):
        with (root / f"modules/{module}/src/lib.rs").open("a") as file:
            file.write(f"\npub mod {name};\n")
    declared = {"go": "backend/store/shape.go", "python": "scoring/shape.py"}
    expected = {
        "go": ("Own", "Square"),
        "python": ("Own", "Square"),
        "typescript": ("Own", "Square"),
        "rust": ("impl Shape for Own", "impl Shape for Square"),
    }
    async with asker(tmp_path, root) as asked:
        await asked.result("list_dir", relative_path=".", recursive=False, project="*")  # opens all modules
        for pair in PAIRS:
            ending = {"typescript": "ts", "rust": "rs"}.get(pair.language, "")
            file = f"modules/{pair.declaring}/{declared.get(pair.language) or f'src/shape.{ending}'}"
            own, theirs = expected[pair.language]
            for module in (pair.declaring, pair.sibling):  # a part of a grouped call does not wait for a slow start
                await opened(asked, root / "modules" / module).warm()
            found = await of_all(asked, "find_implementations", "", relative_path=file)
            found = {module: [name for name in names if name != "Small"] for module, names in found.items()}
            assert found == {pair.declaring: [own], pair.sibling: [theirs]}, pair.language
            alone = await asked.result("find_implementations", name_path="Shape", relative_path=file)
            assert f"Only '{pair.declaring}' was searched" in alone["content"][-1]["text"]
        types = await of_all(
            asked, "get_type_hierarchy", "subtypes", relative_path="modules/assets/backend/store/shape.go"
        )
        assert types == {"assets": ["Own"], "chariot": ["Square"]}
        types = await of_all(asked, "get_type_hierarchy", "subtypes", relative_path="modules/scoring/scoring/shape.py")
        assert types == {"scoring": ["Own"], "scan": ["Square", "Own", "Small"]}


BOUND = {
    "go": (
        {
            "api/go.mod": "module example.com/api\n\ngo 1.21\n",
            "api/api.go": (
                "package api\n\ntype Saver interface {\n\tSave() int\n}\n\nfunc Run(s Saver) int { return s.Save() }\n"
            ),
            "disk/go.mod": "module example.com/disk\n\ngo 1.21\n",
            "disk/disk.go": "package disk\n\ntype Disk struct{}\n\nfunc (d *Disk) Save() int { return 1 }\n",
            "app/go.mod": (
                "module example.com/app\n\ngo 1.21\n\n"
                "require (\n\texample.com/api v0.0.0\n\texample.com/disk v0.0.0\n)\n\n"
                "replace (\n\texample.com/api => ../api\n\texample.com/disk => ../disk\n)\n"
            ),
            "app/main.go": (
                'package main\n\nimport (\n\t"example.com/api"\n\t"example.com/disk"\n)\n\n'
                "func main() { api.Run(&disk.Disk{}) }\n"
            ),
        },
        ("api/api.go", "Saver/Save", 3),
        ("disk/disk.go", "Disk/Save", 4),
    ),
    "rust": (
        {
            "api/Cargo.toml": CARGO.format("api"),
            "api/src/lib.rs": (
                "pub trait Saver {\n    fn save(&self) -> i32;\n}\n\n"
                "pub fn run(s: &dyn Saver) -> i32 {\n    s.save()\n}\n"
            ),
            "disk/Cargo.toml": CARGO.format("disk") + '\n[dependencies]\napi = { path = "../api" }\n',
            "disk/src/lib.rs": (
                "pub struct Disk;\n\nimpl api::Saver for Disk {\n    fn save(&self) -> i32 {\n        1\n    }\n}\n"
            ),
            "app/Cargo.toml": (
                CARGO.format("app") + '\n[dependencies]\napi = { path = "../api" }\ndisk = { path = "../disk" }\n'
            ),
            "app/src/lib.rs": "pub fn go() -> i32 {\n    api::run(&disk::Disk)\n}\n",
        },
        ("api/src/lib.rs", "Saver/save", 1),
        ("disk/src/lib.rs", "impl api::Saver for Disk/save", 3),
    ),
}
"""Language → an interface, a type that implements it, and in a third module their only connection; where each has its
method."""


async def test_a_property_and_the_interface_of_a_sibling_that_has_it_keep_one_name(tmp_path: Path) -> None:
    root = platform(tmp_path)
    (root / "modules/ui/package.json").write_text(SHAPES["ui/package.json"])
    shape, square = root / "modules/ui/src/shape.ts", root / "modules/web/src/square.ts"
    shape.write_text("export interface Shape { size: number }\n")
    square.write_text(
        'import type { Shape } from "@platform/ui/shape";\n\nexport class Square implements Shape {\n  size = 2;\n}\n'
    )
    declared = {"name_path": "Shape/size", "relative_path": "modules/ui/src/shape.ts"}
    async with asker(tmp_path, root) as asked:
        await asked.result("list_dir", relative_path=".", recursive=False, project="*")  # opens all modules
        for module in ("ui", "web"):
            await opened(asked, root / "modules" / module).warm()
        for more in ({"project": "ui"}, {"project": "*"}):
            renamed = await asked.result("rename_symbol", **declared, **more, new_name="extent")
            assert renamed["isError"], renamed
            assert "'web': src/square.ts:3" in text_of(renamed)
        deleted = await asked.result("safe_delete_symbol", **declared)
        assert "'web': src/square.ts:3" in text_of(deleted)


async def types_are_related(asked: Asker, language: str, one: dict[str, str], other: dict[str, str]) -> None:
    """Checks the hierarchy of the types, both ways."""
    for type_, related, direction in ((one, {"disk": "Disk"}, "subtypes"), (other, {"api": "Saver"}, "supertypes")):
        named = {"relative_path": type_["relative_path"], "direction": direction}
        named["name_path"] = "Disk" if type_ is other else "Saver"
        every = await asked.result("get_type_hierarchy", **named, project="*")
        alone = await asked.result("get_type_hierarchy", **named)
        if language == "rust":
            assert alone["isError"], alone
            assert "does not offer" in text_of(alone)
            assert ("find_implementations" in text_of(alone)) == (direction == "subtypes")
            continue
        assert "Only" in alone["content"][-1]["text"], alone
        types = {module: answer[direction] for module, answer in json.loads(every["content"][0]["text"]).items()}
        found = {module: [node["name"] for node in nodes] for module, nodes in types.items() if nodes}
        assert found == {module: [name] for module, name in related.items()}


@pytest.mark.parametrize("language", BOUND)
async def test_a_method_and_the_interface_of_a_sibling_that_it_implements_keep_one_name(
    tmp_path: Path, language: str
) -> None:
    files, (declaring, interface, line), (implementing, method, own) = BOUND[language]
    modules = "".join(f"  {name}: {{path: {name}, languages: [{language}]}}\n" for name in ("api", "disk", "app"))
    config = {".serena/project.yml": f"name: platform\ntype: super-repo\nmodules:\n{modules}"}
    root = written((tmp_path / "platform").resolve(), {**config, **files})
    new = "Keep" if language == "go" else "keep"
    one, other = (
        {"name_path": interface, "relative_path": declaring},
        {"name_path": method, "relative_path": implementing},
    )
    async with asker(tmp_path, root) as asked:
        await asked.result("list_dir", relative_path=".", recursive=False, project="*")  # opens all modules
        for module in ("api", "disk", "app"):
            await opened(asked, root / module).warm()
        found = await asked.result("find_implementations", **one, project="*")
        assert [item["name_path"] for item in json.loads(found["content"][0]["text"])["disk"]] == [method]
        await types_are_related(asked, language, one, other)
        for said, where in ((one, f"'disk': {implementing.removeprefix('disk/')}:{own}"), (other, "api")):
            for more in ({}, {"project": "*"}):
                renamed = await asked.result("rename_symbol", **said, **more, new_name=new)
                assert renamed["isError"], renamed
                assert where in text_of(renamed)
            deleted = await asked.result("safe_delete_symbol", **said)
            assert deleted["isError"], deleted
            if (said, language) == (other, "go"):  # rust-analyzer renames both, and so nothing
                assert f"'api': api.go:{line}" in text_of(deleted)
        forced = await asked.result("rename_symbol", **one, new_name=new, force=True)
        assert not forced["isError"], forced
        assert f"{implementing.removeprefix('disk/')}:{own}" in str(forced["content"])
    assert {path: (root / path).read_text() for path in files if path != declaring} == {
        path: text for path, text in files.items() if path != declaring
    }
