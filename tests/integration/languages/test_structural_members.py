"""Members of TypeScript that a value must have to fit a type which it does not name; with the real language server."""

from pathlib import Path

import anyio
import pytest

from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "tsconfig.json": "{}",
    "package.json": '{"private": true}',
    "types.ts": """\
export interface Size { wide: number }
export type Deep = { deep: number };
export const area = (s: Size) => s.wide;
export const depth = (d: Deep) => d.deep;
export const run = (x: { lean(): number }) => x.lean();
""",
    "main.ts": """\
import { area, depth, run } from "./types";
class Rect {
  wide = 1;
  deep = 2;
  lean() { return 3; }
  idle = 4;
  private hidden = 5;
}
const plain = {
  wide: 1,
  deep: 2,
  lean: () => 3,
  idle: 4,
};
function outer() {
  function deep() {}
}
type Hidden = { hidden: number };
declare const unused: Hidden;
for (const one of [new Rect(), plain]) console.log(area(one), depth(one), run(one), unused, outer);
""",
}


@pytest.mark.parametrize("holder", ["Rect", "plain"])
async def test_a_member_that_a_type_may_demand_is_kept(tmp_path: Path, holder: str) -> None:
    async with asker(tmp_path, written(tmp_path / "shapes", FILES)) as ask:
        for name, line0 in {"wide": 0, "deep": 1, "lean": 4}.items():
            refused = await ask.result("safe_delete_symbol", name_path=f"{holder}/{name}")
            assert f"a type in types.ts:{line0} has a member of the same name" in text_of(refused), text_of(refused)
            renamed = await ask.result("rename_symbol", name_path=f"{holder}/{name}", new_name="other", dry_run=True)
            assert "as the name of other symbols, such as overrides: " in text_of(renamed)
            assert f"types.ts:{line0}" in text_of(renamed), text_of(renamed)
        local = await ask.result("safe_delete_symbol", name_path="outer/deep")
        assert not local["isError"], text_of(local)
        for name in ("idle", "hidden") if holder == "Rect" else ("idle",):
            deleted = await ask.result("safe_delete_symbol", name_path=f"{holder}/{name}")
            assert not deleted["isError"], text_of(deleted)


DEMANDED = {
    "tsconfig.json": '{"compilerOptions": {"module": "nodenext", "strict": true, "noEmit": true}, "include": ["src"]}',
    "package.json": '{"private": true, "type": "module"}',
    "node_modules/plugins/package.json": '{"name": "plugins", "version": "1.0.0", "types": "index.d.ts"}',
    "node_modules/plugins/index.d.ts": "export function use(plugin: { label: string; setup(): void }): void;\n",
    "src/values.ts": """\
export class Pet { called = ""; legs = 4; }
export const show = (pet: Pet) => pet.called;
export const keyed = { one: 1, two: 2, three: 3 };
export const record = (values: Record<"one" | `tw${"o"}`, number>) => values.one;
export class Plugin { label = "x"; setup() {} idle = 1; }
export const origin = { first: 1, second: 2 };
export const same = { first: 3, second: 4, third: 5 };
export const made = () => ({ id: 1, called: "x", legs: 4 });
export const fitting = { name: "x", idle: 1 };
""",
    "src/main.ts": """\
import { use } from "plugins";
import { fitting, keyed, made, origin, Plugin, record, same, show } from "./values.js";
const { id, ...rest } = made();
console.log(id, show(rest), show({ ...rest }), record(keyed));
use(new Plugin());
let one = origin;
one = same;
const { name } = fitting;
console.log(one, { name } satisfies { name: string });
""",
}


async def check_no_errors(ask: Asker) -> None:
    found = await ask.result("get_diagnostics_for_file", relative_path="src/main.ts")
    assert "No problems were reported." in text_of(found), text_of(found)


async def test_a_member_is_kept_without_which_a_value_would_not_fit(tmp_path: Path) -> None:
    """Of a class, a computed key, a package's type and the type of another value: none is a member of an interface."""
    async with asker(tmp_path, written(tmp_path / "shapes", DEMANDED)) as ask:
        before = (ask.root / "src/values.ts").read_text()
        for name_path, line0 in {"keyed/two": 3, "Plugin/label": 4, "Plugin/setup": 4, "same/second": 6}.items():
            refused = await ask.result("safe_delete_symbol", name_path=name_path, relative_path="src/values.ts")
            assert refused["isError"], text_of(refused)
            assert f"Without it there would be errors in src/main.ts:{line0} (" in text_of(refused), text_of(refused)
        assert (ask.root / "src/values.ts").read_text() == before
        await check_no_errors(ask)
        forced = await ask.result("safe_delete_symbol", name_path="keyed/two", force=True, dry_run=True)
        assert "Deleted despite: Without it there would be errors in src/main.ts:3" in text_of(forced)
        for name_path in ("keyed/three", "Plugin/idle", "same/third", "fitting/idle"):
            deleted = await ask.result("safe_delete_symbol", name_path=name_path, relative_path="src/values.ts")
            assert not deleted["isError"], text_of(deleted)
            assert "were looked for in" not in text_of(deleted)
            await check_no_errors(ask)


async def test_a_member_is_kept_for_a_file_that_is_asked_about_late(tmp_path: Path) -> None:
    """One of many that name neither the member, nor what holds it, nor their module."""
    shapes = DEMANDED | {f"src/file{number:03}.ts": f"export const n = {number};\n" for number in range(100)}
    shapes["src/all.ts"] = 'export { keyed as box } from "./values.js";\n'
    shapes["src/main.ts"] = """\
import { box } from "./all.js";
const show = (values: Record<"one" | `tw${"o"}`, number>) => values.one;
console.log(show(box));
"""
    async with asker(tmp_path, written(tmp_path / "shapes", shapes)) as ask:
        refused = await ask.result("safe_delete_symbol", name_path="keyed/two")
        assert "Without it there would be errors in src/main.ts:2 (" in text_of(refused), text_of(refused)
        deleted = await ask.result("safe_delete_symbol", name_path="keyed/three")
        assert not deleted["isError"], text_of(deleted)
        assert "were looked for in" not in text_of(deleted)


async def test_a_rename_tells_of_errors_in_files_that_do_not_name_the_member(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shapes", DEMANDED)) as ask:
        for dry_run in (True, False):
            renamed = await ask.result("rename_symbol", name_path="Pet/legs", new_name="feet", dry_run=dry_run)
            assert "The rename leaves errors in src/main.ts:3 ('Property" in text_of(renamed), text_of(renamed)
        fine = await ask.result("rename_symbol", name_path="keyed/three", new_name="fourth")
        assert "The rename leaves errors" not in text_of(fine), text_of(fine)


async def test_nobody_else_is_answered_by_a_text_that_is_only_tried(tmp_path: Path) -> None:
    """Nor held up: the server was shown that text, and the file is as it was."""
    async with asker(tmp_path, written(tmp_path / "shapes", DEMANDED)) as ask:

        async def delete(name_path: str) -> None:
            for _ in range(20):
                refused = await ask.result("safe_delete_symbol", name_path=name_path, dry_run=True)
                assert "Without it there would be errors in src/main.ts" in text_of(refused), text_of(refused)

        async def look() -> None:
            for _ in range(40):
                await check_no_errors(ask)

        await delete("keyed/two")
        async with anyio.create_task_group() as tasks:
            for name_path in ("keyed/two", "Plugin/label", "same/second"):
                tasks.start_soon(delete, name_path)
            tasks.start_soon(look)
