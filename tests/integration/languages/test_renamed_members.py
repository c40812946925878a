"""A member's new name: what stands for a value that was taken out of it keeps its own, with real language servers."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.integration.languages.test_sibling_edits import asked, session
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

TSCONFIG = json.dumps({"compilerOptions": {"module": "nodenext", "strict": True, "noEmit": True}, "include": ["src"]})

CARGO = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'

QUERY = """\
export interface Result {
  data: number;
  load(): void;
}

export function useQuery(): Result {
  return { data: 1, load() {} };
}

export const settings = { depth: 1 };
"""

PAGE = """\
import { useQuery, type Result } from "./query.js";

const { load } = useQuery();
load();

export function again(): void {
  const { load = () => {} } = useQuery();
  const all = { load };
  load();
  all.load();
}

export function given({ load }: Result): Result {
  load();
  return { data: 2, load };
}
"""


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / ".git").mkdir()
    return root


async def test_a_variable_that_is_named_after_a_renamed_member_keeps_its_name(tmp_path: Path) -> None:
    package = '{"type": "module"}'
    files = {"package.json": package, "tsconfig.json": TSCONFIG, "src/query.ts": QUERY, "src/page.ts": PAGE}
    root = written(tmp_path / "pages", files)
    async with asker(tmp_path, root) as client:
        renamed = await client.result(
            "rename_symbol", name_path="Result/load", relative_path="src/query.ts", new_name="fetchIt"
        )
    assert not renamed["isError"], text_of(renamed)
    assert "rename omitted" not in json.dumps(renamed)
    expected = PAGE.replace("{ load } = useQuery", "{ fetchIt: load } = useQuery")
    expected = expected.replace("{ load = ", "{ fetchIt: load = ").replace("({ load }:", "({ fetchIt: load }:")
    assert (root / "src/page.ts").read_text() == expected.replace("data: 2, load }", "data: 2, fetchIt: load }")
    assert "load" not in (root / "src/query.ts").read_text()


POINTS = """\
pub struct P {
    pub val: i32,
}

pub fn sum(val: i32) -> i32 {
    let p = P { val };
    let P { val } = p;
    let P { ref val } = p;
    println!("{val}");
    *val + p.val
}
"""


async def test_a_variable_that_gives_a_renamed_field_its_value_keeps_its_name(tmp_path: Path) -> None:
    root = written(tmp_path / "points", {"Cargo.toml": CARGO.format("points"), "src/lib.rs": POINTS})
    async with asker(tmp_path, root, rust_std=True) as client:
        await client.result("rename_symbol", name_path="P/val", relative_path="src/lib.rs", new_name="value")
    expected = POINTS.replace("pub val", "pub value").replace("{ val }", "{ value: val }").replace("p.val", "p.value")
    assert (root / "src/lib.rs").read_text() == expected.replace("{ ref val }", "{ value: ref val }")


STUBBED = {
    "native.pyi": "def add(a: int, b: int) -> int: ...\n\nclass Fast:\n    def go(self) -> int: ...\n",
    "native.py": "def add(a, b):\n    return a + b\n\n\nclass Fast:\n    def go(self):\n        return add(1, 2)\n",
    "use.py": "from native import Fast, add\n\nprint(add(1, 2), Fast().go())\n",
}


@pytest.mark.parametrize("declared", ["native.py", "native.pyi"])
async def test_a_stub_and_its_module_are_renamed_together(tmp_path: Path, declared: str) -> None:
    root = written(tmp_path / "stubbed", STUBBED)
    async with asker(tmp_path, root) as client:
        for name_path, new_name in (("add", "total"), ("Fast/go", "start"), ("Fast", "Quick")):
            renamed = await client.result(
                "rename_symbol", name_path=name_path, relative_path=declared, new_name=new_name
            )
            assert not renamed["isError"], text_of(renamed)
    for path, text in STUBBED.items():
        expected = text.replace("add", "total").replace("go(", "start(").replace("Fast", "Quick")
        assert (root / path).read_text() == expected


DECLARED = {
    "tsconfig.json": json.dumps({"compilerOptions": {"module": "nodenext", "allowJs": True, "noEmit": True}}),
    "package.json": '{"type": "module"}',
    "native.d.ts": "export declare function add(a: number): number;\nexport declare class Fast {\n  go(): number;\n}\n",
    "native.js": "export function add(a) { return a + 1 }\nexport class Fast {\n  go() { return add(1) }\n}\n",
    "use.ts": 'import { Fast, add } from "./native.js";\n\nconsole.log(add(1), new Fast().go());\n',
    "run.js": 'import { Fast, add } from "./native.js";\n\nconsole.log(add(1), new Fast().go());\n',
}


@pytest.mark.parametrize("declared", ["native.js", "native.d.ts"])
async def test_a_script_and_its_declaration_file_are_renamed_together_and_have_the_same_uses(
    tmp_path: Path, declared: str
) -> None:
    """TypeScript takes what the script holds for unused: all that imports it leads to the declaration file."""
    root = written(tmp_path / "declared", DECLARED)
    async with asker(tmp_path, root) as client:
        for name_path in ("add", "Fast/go", "Fast"):
            refused = await client.result("safe_delete_symbol", name_path=name_path, relative_path=declared)
            assert "It is referenced in" in text_of(refused), text_of(refused)
            for place in ("use.ts:2", "run.js:2"):
                assert place in text_of(refused)
        for name_path, new_name in (("add", "total"), ("Fast/go", "start"), ("Fast", "Quick")):
            renamed = await client.result(
                "rename_symbol", name_path=name_path, relative_path=declared, new_name=new_name
            )
            assert not renamed["isError"], text_of(renamed)
    for path, text in DECLARED.items():
        expected = text.replace("add", "total").replace("go(", "start(").replace("Fast", "Quick")
        assert (root / path).read_text() == expected


APART = {
    "tsconfig.json": json.dumps({"compilerOptions": {"module": "commonjs", "allowJs": True, "noEmit": True}}),
    "lib.d.ts": "export function add(): void;\nexport function put(): void;\ndeclare function got(): void;\n"
    "export { got };\n",
    "lib.js": "function add() {}\nfunction put() {}\nfunction got() {}\n"
    "module.exports = { add, value: { a: 1 }, got };\nmodule.exports.put = put;\n",
    "use.ts": 'import { add, got, put } from "./lib";\n\nadd(); got(); put();\n',
}


async def test_what_a_script_goes_on_exporting_under_the_old_name_is_not_declared_under_the_new_one(
    tmp_path: Path,
) -> None:
    """TypeScript finds nothing wrong with that, and whoever imports the new name gets nothing."""
    root = written(tmp_path / "apart", APART)
    async with asker(tmp_path, root) as client:
        for name, path in (("add", "lib.js"), ("add", "lib.d.ts"), ("put", "lib.js"), ("put", "lib.d.ts")):
            refused = await client.result("rename_symbol", name_path=name, relative_path=path, new_name="fresh")
            assert f"'lib.js' would still export {name} under this name, and 'lib.d.ts'" in text_of(refused)
        renamed = await client.result("rename_symbol", name_path="got", relative_path="lib.js", new_name="fresh")
        assert not renamed["isError"], text_of(renamed)
    assert "fresh as got" in (root / "lib.d.ts").read_text()
    assert "got: fresh" in (root / "lib.js").read_text()


CONFIGURATION = """\
name: platform
type: super-repo
default_module: ui
modules:
  ui: {path: ui, languages: [typescript]}
  web: {path: web, languages: [typescript]}
  core: {path: core, languages: [rust]}
  app: {path: app, languages: [rust]}
"""

WEB = """\
import { settings, useQuery } from "@p/ui";
import * as ui from "@p/ui";

const { depth } = settings;
const { load, data } = useQuery();
load();
const { useQuery: other } = ui;
export function again(): number {
  const { useQuery } = ui;
  return useQuery().data + data + depth + settings.depth + other().data;
}
export const both = { depth, useQuery };
"""

APP = """\
use core_x::P;

fn main() {
    let val = 1;
    let p = P { val };
    let P { val } = p;
    println!("{val} {}", val);
    let P { ref val } = p;
    println!("{val} {}", val);
    assert_eq!(P { val: 2 }.val, 2);
}
"""

SIBLINGS = {
    ".serena/project.yml": CONFIGURATION,
    "ui/package.json": '{"name": "@p/ui", "type": "module", "exports": "./src/query.ts"}',
    "ui/tsconfig.json": TSCONFIG,
    "ui/src/query.ts": QUERY,
    "web/package.json": '{"name": "@p/web", "type": "module"}',
    "web/tsconfig.json": TSCONFIG,
    "web/src/page.ts": WEB,
    "core/Cargo.toml": CARGO.format("core-x"),
    "core/src/lib.rs": "pub struct P {\n    pub val: i32,\n}\n",
    "app/Cargo.toml": CARGO.format("app") + '\n[dependencies]\ncore-x = { path = "../core" }\n',
    "app/src/main.rs": APP,
}


def platform(tmp_path: Path) -> Path:
    root = written((tmp_path / "platform").resolve(), SIBLINGS)
    (root / "web/node_modules/@p").mkdir(parents=True)
    (root / "web/node_modules/@p/ui").symlink_to("../../../ui")
    return root


async def renamed_in_both(tmp_path: Path, declared: dict[str, str], new_name: str, both: list[str]) -> Any:
    async with session(tmp_path, tmp_path / "platform", rust_std="core" in both) as (client, _):
        return await asked(client, "rename_symbol", **declared, new_name=new_name, project=both)


@pytest.mark.parametrize(
    ("name_path", "new_name", "changes"),
    [
        ("Result/load", "fetchIt", [("{ load, data }", "{ fetchIt: load, data }")]),
        ("settings/depth", "level", [("{ depth } =", "{ level: depth } ="), ("settings.depth", "settings.level")]),
        (
            "useQuery",
            "query",
            [
                ("settings, useQuery }", "settings, query }"),
                ("= useQuery();", "= query();"),
                ("useQuery: other", "query: other"),
                ("const { useQuery } = ui", "const { query: useQuery } = ui"),
                ("{ depth, useQuery }", "{ depth, useQuery: query }"),
            ],
        ),
    ],
)
async def test_variables_of_a_sibling_keep_their_names(
    tmp_path: Path, name_path: str, new_name: str, changes: list[tuple[str, str]]
) -> None:
    root = platform(tmp_path)
    declared = {"name_path": name_path, "relative_path": "ui/src/query.ts"}
    await renamed_in_both(tmp_path, declared, new_name, ["ui", "web"])
    expected = WEB
    for old, new in changes:
        assert old in expected
        expected = expected.replace(old, new)
    assert (root / "web/src/page.ts").read_text() == expected


async def test_a_renamed_field_is_told_from_the_variable_of_its_name(tmp_path: Path) -> None:
    root = platform(tmp_path)
    declared = {"name_path": "P/val", "relative_path": "core/src/lib.rs"}
    await renamed_in_both(tmp_path, declared, "value", ["core", "app"])
    expected = (
        APP.replace("P { val }", "P { value: val }")
        .replace("P { val: 2 }.val", "P { value: 2 }.value")
        .replace("P { ref val }", "P { value: ref val }")
    )
    assert (root / "app/src/main.rs").read_text() == expected


async def test_a_joint_rename_reports_no_errors_from_before_the_other_part_was_written(tmp_path: Path) -> None:
    linked = '[project]\nname = "b"\nversion = "1"\n[tool.ty.environment]\nextra-paths = ["../a"]\n'
    base = written(tmp_path / "a", {"a.py": "def foo():\n    return 1\n"})
    user = written(tmp_path / "b", {"pyproject.toml": linked, "b.py": "from a import foo\n\nprint(foo())\n"})
    answers: list[Any] = []
    names = ["foo", *(f"foo{number}" for number in range(6))]
    async with session(tmp_path, base, {"edit_diagnostics_s": 30}) as (client, _):
        for old, new in pairwise(names):
            declared = {"name_path": old, "relative_path": str(base / "a.py")}
            project = [str(base), str(user)]
            answers.append(await asked(client, "rename_symbol", **declared, new_name=new, project=project))
    assert (user / "b.py").read_text() == "from a import foo5\n\nprint(foo5())\n"
    assert "new_errors" not in json.dumps(answers)


HANDLER = """\
class Handler:
    def process(self) -> int:
        return 1
"""

MINE = """\
from a import Handler


class Mine(Handler):
    def process(self) -> int:
        return 2


def go(handler: Handler) -> int:
    return handler.process()
"""


async def test_a_joint_rename_says_which_overrides_of_a_sibling_keep_the_old_name(tmp_path: Path) -> None:
    linked = '[project]\nname = "b"\nversion = "1"\n[tool.ty.environment]\nextra-paths = ["../a"]\n'
    base = written(tmp_path / "a", {"a.py": HANDLER})
    user = written(tmp_path / "b", {"pyproject.toml": linked, "b.py": MINE})
    declared = {"name_path": "Handler/process", "relative_path": str(base / "a.py")}
    async with session(tmp_path, base) as (client, _):
        _, notes = await asked(client, "rename_symbol", **declared, new_name="handle", project=[str(base), str(user)])
    assert "process still occurs as the name of other symbols, such as overrides: b.py:4" in notes
    assert (user / "b.py").read_text() == MINE.replace("handler.process", "handler.handle")


async def test_a_rename_in_one_module_says_which_overrides_of_a_sibling_keep_the_old_name(tmp_path: Path) -> None:
    modules = "".join(f"  {name}: {{path: {name}, languages: [python]}}\n" for name in ("base", "user"))
    files = {
        ".serena/project.yml": f"name: both\ntype: super-repo\nmodules:\n{modules}",
        "base/pyproject.toml": '[project]\nname = "base"\nversion = "1"\n',
        "base/base/__init__.py": HANDLER,
        "user/pyproject.toml": '[project]\nname = "user"\nversion = "1"\n',  # where ty does not find the other module
        "user/user.py": "import base\n\n\nclass Mine(base.Handler):\n    def process(self) -> int:\n        return 2\n",
    }
    root = written(tmp_path / "both", files)
    declared = {"name_path": "Handler/process", "relative_path": "base/base/__init__.py"}
    async with session(tmp_path, root) as (client, _):
        _, notes = await asked(client, "rename_symbol", **declared, new_name="handle", project="base")
    assert "process still occurs as the name of other symbols, such as overrides: 'user': user.py:4" in notes


TABLE = """\
export const table = { load: 1, keep: 2 };
export const { load, keep: kept } = table;
export const twice = load * 2;
"""

IMPORTER = """\
import { load, table } from "./table.js";

export const sum = load + table.load;
export const all = { load };
"""


async def test_a_variable_that_an_exported_pattern_declares_keeps_its_name_in_other_files(tmp_path: Path) -> None:
    files = {"package.json": '{"type": "module"}', "tsconfig.json": TSCONFIG}
    root = written(tmp_path / "pages", {**files, "src/table.ts": TABLE, "src/importer.ts": IMPORTER})
    async with asker(tmp_path, root) as client:
        renamed = await client.result(
            "rename_symbol", name_path="table/load", relative_path="src/table.ts", new_name="fresh"
        )
    assert not renamed["isError"], text_of(renamed)
    assert (root / "src/table.ts").read_text() == TABLE.replace("{ load: 1", "{ fresh: 1").replace(
        "{ load,", "{ fresh: load,"
    )
    assert (root / "src/importer.ts").read_text() == IMPORTER.replace("table.load", "table.fresh")
