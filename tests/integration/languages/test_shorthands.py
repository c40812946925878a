"""A rename at places that name two things at once (`{ name }`), with real language servers: what is changed, what
stays, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.languages.test_renamed_members import CARGO, TSCONFIG, written
from tests.integration.languages.test_sibling_edits import asked, session
from tests.support.languages import Asker, asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

MADE = """\
function make() { return { a: 1, b: 2, d: { e: 3 } }; }
export const { a, b: c, d: { e } } = make();
export function total(): number { return a + c + e; }
"""

HELD = """\
import { a, c, e } from "./made.js";
import * as all from "./made.js";
export const sum = a + c + e + all.a + all.c;
export const held = { a, c };
export { a as again } from "./made.js";
export { c } from "./made.js";
"""

USED = """\
import { c, held } from "./held.js";
export const all = c + held.a + held.c;
"""

TYPESCRIPT = {
    "package.json": '{"type": "module"}',
    "tsconfig.json": TSCONFIG,
    "src/made.ts": MADE,
    "src/held.ts": HELD,
    "src/used.ts": USED,
}


async def renamed(ask: Asker, name_path: str, path: str, new_name: str) -> dict[str, Any]:
    return await ask.result("rename_symbol", name_path=name_path, relative_path=path, new_name=new_name)


def texts(root: Path) -> list[str]:
    return [(root / "src" / name).read_text() for name in ("made.ts", "held.ts", "used.ts")]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "a",
            [
                ("{ a, b: c", "{ a: renamed, b: c"),
                ("return a +", "return renamed +"),
                ("{ a, c, e } from", "{ renamed, c, e } from"),
                ("sum = a + c + e + all.a", "sum = renamed + c + e + all.renamed"),
                ("held = { a, c }", "held = { a: renamed, c }"),
                ("{ a as again }", "{ renamed as again }"),
            ],
        ),
        (
            "c",
            [
                ("b: c,", "b: renamed,"),
                ("return a + c", "return a + renamed"),
                ("{ a, c, e } from", "{ a, renamed, e } from"),
                ("sum = a + c + e + all.a + all.c", "sum = a + renamed + e + all.a + all.renamed"),
                ("held = { a, c }", "held = { a, c: renamed }"),
                ("export { c }", "export { renamed as c }"),
            ],
        ),
        (
            "e",
            [
                ("d: { e } }", "d: { e: renamed } }"),
                ("a + c + e;", "a + c + renamed;"),
                ("{ a, c, e } from", "{ a, c, renamed } from"),
                ("sum = a + c + e +", "sum = a + c + renamed +"),
            ],
        ),
    ],
)
async def test_an_exported_variable_that_a_pattern_names_after_a_field_is_renamed_alone(
    tmp_path: Path, name: str, changes: list[tuple[str, str]]
) -> None:
    root = written(tmp_path / "pages", TYPESCRIPT)
    async with asker(tmp_path, root) as ask:
        result = await renamed(ask, name, "src/made.ts", "renamed")
    assert not result["isError"], text_of(result)
    expected = [MADE, HELD, USED]
    for old, new in changes:
        assert any(old in text for text in expected), old
        expected = [text.replace(old, new) for text in expected]
    assert texts(root) == expected
    assert "new_errors" not in text_of(result)
    assert "rename omitted" not in text_of(result)


async def test_a_field_that_is_written_by_the_name_of_its_value_alone_is_not_taken_for_the_value(
    tmp_path: Path,
) -> None:
    root = written(tmp_path / "pages", TYPESCRIPT)
    async with asker(tmp_path, root) as ask:
        refused = await renamed(ask, "held/c", "src/held.ts", "renamed")
        assert refused["isError"]
        assert "src/held.ts:3" in text_of(refused)
        assert "`c: c`" in text_of(refused)
        assert texts(root) == [MADE, HELD, USED]
        (root / "src/held.ts").write_text(HELD.replace("{ a, c };", "{ a, c: c };"))
        result = await renamed(ask, "held/c", "src/held.ts", "renamed")
    assert not result["isError"], text_of(result)
    assert texts(root) == [
        MADE,
        HELD.replace("{ a, c };", "{ a, renamed: c };"),
        USED.replace("held.c", "held.renamed"),
    ]


IMPORTING = """\
export async function run(): Promise<number> {
  const { Box } = await import("./box.js");
  const box = await import("./box.js");
  return new Box().size + new box.Box().size;
}
export async function other() {
  const { Box: Case } = await import("./box.js");
  return import("./box.js").then(({ Box }) => [new Box(), new Case()]);
}
"""


COLLECTING = """\
import { Box } from "./box.js";
export const all = { Box };
export const one = new all.Box();
export { Box as Case } from "./box.js";
"""


async def test_a_class_that_is_taken_out_of_a_dynamic_import_or_put_into_an_object_is_renamed_there(
    tmp_path: Path,
) -> None:
    files = {
        "package.json": '{"type": "module"}',
        "tsconfig.json": TSCONFIG,
        "src/box.ts": "export class Box {\n  size = 1;\n}\n",
        "src/use.ts": IMPORTING,
        "src/all.ts": COLLECTING,
    }
    root = written(tmp_path / "pages", files)
    async with asker(tmp_path, root) as ask:
        result = await renamed(ask, "Box", "src/box.ts", "Crate")
    assert "new_errors" not in text_of(result)
    expected = (
        IMPORTING.replace("{ Box }", "{ Crate: Box }").replace("{ Box:", "{ Crate:").replace("box.Box", "box.Crate")
    )
    assert (root / "src/use.ts").read_text() == expected
    assert (root / "src/box.ts").read_text() == files["src/box.ts"].replace("Box", "Crate")
    assert (root / "src/all.ts").read_text() == (
        COLLECTING.replace("{ Box };", "{ Box: Crate };").replace("{ Box }", "{ Crate }").replace("Box as", "Crate as")
    )


REQUIRING = """\
const { Box } = require("./box");
const whole = require("./box");
const { Box: Case } = require("./box");
console.log(Box, whole.Box, Case);
function two() {
  const { Box } = require("./box");
  return [Box, { Box }];
}
"""


async def test_a_class_that_is_taken_out_of_a_commonjs_module_is_renamed_there(tmp_path: Path) -> None:
    boxes = {
        "named": "exports.Box = class Box {};\n",
        "function": "exports.Box = function Box() {};\n",
        "recursive": "module.exports.Box = function Box(deep) {\n  return deep && new Box();\n};\n",
        "assigned": "class Box {}\nmodule.exports.Box = Box;\n",
        "literal": "module.exports = {\n  Box: class {},\n};\n",
    }
    files = {f"{folder}/box.js": text for folder, text in boxes.items()}
    root = written(tmp_path / "pages", {**files, **{f"{folder}/use.js": REQUIRING for folder in boxes}})
    expected = REQUIRING.replace("{ Box } =", "{ Crate: Box } =").replace("{ Box:", "{ Crate:")
    async with asker(tmp_path, root) as ask:
        for folder, text in boxes.items():
            await ask.result("get_symbols_overview", relative_path=f"{folder}/box.js", depth=1)
            result = await renamed(ask, "Box", f"{folder}/box.js", "Crate")
            assert not result["isError"], text_of(result)
            assert (root / folder / "box.js").read_text() == text.replace("Box", "Crate")
            assert (root / folder / "use.js").read_text() == expected.replace("whole.Box", "whole.Crate")


POINTS = """\
pub fn sum(val: i32) -> i32 {
    let all = vec![P { val, other: 1 }, P { other: 2, val }];
    assert!(matches!(all[0], P { val, .. } if val > 0));
    println!("{} {val}", P { val, other: 1 }.val);
    let other = if val > 1 { val } else { 2 };
    dbg!(P { other, val: 3 }, if other > 1 { val } else { val }).0.val
}
"""

RENAMED_POINTS = """\
pub fn sum(val: i32) -> i32 {
    let all = vec![P { value: val, other: 1 }, P { other: 2, value: val }];
    assert!(matches!(all[0], P { value: val, .. } if val > 0));
    println!("{} {val}", P { value: val, other: 1 }.value);
    let other = if val > 1 { val } else { 2 };
    dbg!(P { other, value: 3 }, if other > 1 { val } else { val }).0.value
}
"""

DECLARED = "#[derive(Debug, Clone)]\npub struct P {\n    pub val: i32,\n    pub other: i32,\n}\n\n"

CRATES = {
    ".serena/project.yml": """\
name: platform
type: super-repo
default_module: core
modules:
  core: {path: core, languages: [rust]}
  app: {path: app, languages: [rust]}
""",
    "core/Cargo.toml": CARGO.format("core-x"),
    "core/src/lib.rs": DECLARED + POINTS,
    "app/Cargo.toml": CARGO.format("app") + '\n[dependencies]\ncore-x = { path = "../core" }\n',
    "app/src/lib.rs": "use core_x::P;\n\n" + POINTS,
}


@pytest.mark.slow
async def test_a_field_is_told_from_a_variable_of_its_name_inside_of_macros_of_all_crates(tmp_path: Path) -> None:
    root = written((tmp_path / "platform").resolve(), CRATES)
    declared = {"name_path": "P/val", "relative_path": "core/src/lib.rs"}
    async with session(tmp_path, root, rust_std=True) as (client, _):
        await asked(client, "rename_symbol", **declared, new_name="value", project=["core", "app"])
    assert (root / "core/src/lib.rs").read_text() == DECLARED.replace("val:", "value:") + RENAMED_POINTS
    assert (root / "app/src/lib.rs").read_text() == "use core_x::P;\n\n" + RENAMED_POINTS


BARREL = {
    "package.json": '{"type": "module"}',
    "tsconfig.json": TYPESCRIPT["tsconfig.json"],
    "src/made.ts": "export function chosen(): number {\n  return 1;\n}\n",
    "src/index.ts": 'export {\n  // first\n  chosen,\n} from "./made.js";\n'
    'export { chosen as other } from "./made.js";\n',
    "src/used.ts": 'import { chosen } from "./index.js";\nimport { chosen as own } from "./made.js";\n\n'
    "export const all = [chosen(), own()];\n",
}


async def test_a_name_that_modules_export_is_as_it_was_when_it_is_renamed_back(tmp_path: Path) -> None:
    root = written(tmp_path / "pages", BARREL)
    async with asker(tmp_path, root) as ask:
        assert not (await renamed(ask, "chosen", "src/made.ts", "picked"))["isError"]
        assert "picked as chosen,\n" in (root / "src/index.ts").read_text()
        assert not (await renamed(ask, "picked", "src/made.ts", "chosen"))["isError"]
    assert {path: (root / path).read_text() for path in BARREL} == BARREL
