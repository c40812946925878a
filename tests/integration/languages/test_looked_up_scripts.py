"""Exports of JavaScript and TypeScript that code looks up by a name which it does not write, and those that frameworks
use of files which they load by their paths."""

from pathlib import Path

import pytest

from tests.integration.languages.test_loaded_by_name import refusal
from tests.integration.languages.test_new_names import text_of
from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

TSCONFIG = (
    '{"compilerOptions": {"module": "esnext", "moduleResolution": "bundler", "target": "es2022", "jsx": "preserve"}}'
)
PRIVATE = '{"name": "shop", "private": true, "type": "module"}'


def exporting(name: str) -> str:
    return f"export function {name}() {{ return 1; }}\n"


VALUES = {
    "package.json": PRIVATE,
    "tsconfig.json": TSCONFIG,
    "src/keys.ts": exporting("inKeys"),
    "src/passed.ts": "function inPassed() { return 1; }\nfunction ownOfPassed() { return 2; }\nexport { inPassed };\n",
    "src/starred.ts": exporting("inStarred"),
    "src/named.ts": exporting("inNamed"),
    "src/all.ts": 'export * from "./starred";\nexport * as named from "./named";\n',
    "src/members.ts": exporting("inMembers") + exporting("usedMember"),
    "src/awaited.ts": exporting("inAwaited"),
    "src/lazy.ts": f"export default {exporting('lazyDefault').removeprefix('export ')}{exporting('besideDefault')}",
    "plugins/one.ts": exporting("inPlugin"),
    "modules/two.ts": exporting("inModule"),
    "src/objects.ts": """\
const table: Record<string, () => number> = { started() { return 1; } };
const listed = { inList() { return 1; } };
for (const key of Object.keys(listed)) console.log(key);
const fixed = { stopped() { return 1; }, going() { return 2; } };
class Api {
    called() { return 1; }
    run(name: string) { return (this as any)[name](); }
}
class Plain {
    idle() { return 1; }
}
console.log(table[process.argv[2]](), fixed.going(), new Api().run("x"), new Plain());
""",
    "src/main.ts": """\
import * as keys from "./keys";
import * as passed from "./passed.js";
import * as all from "./all";
import { named } from "./all";
import * as members from "./members"; // members, as they are
console.log(Object.keys(keys), String(passed), { ...all }, named[process.argv[2]]);
console.log(members.usedMember(), "members", members["usedMember"]());
console.log(Object.keys(await import("./awaited")), lazy(() => import("./lazy")));
declare function lazy(load: () => Promise<unknown>): unknown;
for (const load of Object.values(import.meta.glob("../modules/*.ts"))) console.log(Object.keys(await load()));
console.log(Object.values(await import(`../plugins/${process.argv[2]}.js`)));
""",
}


async def test_what_a_module_exports_is_kept_where_code_uses_the_module_as_a_value(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", VALUES)) as ask:
        for name, line0 in {"inKeys": 5, "inPassed": 5, "inStarred": 5, "inNamed": 5, "inAwaited": 7}.items():
            assert f"src/main.ts:{line0} uses its module as a value" in await refusal(ask, name), name
        for name, line0 in {"inModule": 9, "inPlugin": 10}.items():
            assert f"src/main.ts:{line0} loads modules by paths" in await refusal(ask, name), name
        assert "src/main.ts:7 loads its module, and may use the default export" in await refusal(ask, "lazyDefault")
        for name in ("inMembers", "ownOfPassed", "besideDefault"):
            assert not await refusal(ask, name), name
        renamed = await ask.result("rename_symbol", name_path="inKeys", new_name="other", dry_run=True)
        assert "uses its module as a value" in text_of(renamed)


async def test_members_are_kept_where_code_computes_the_name_of_one(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", VALUES)) as ask:
        assert "src/objects.ts:11 looks up members of table" in await refusal(ask, "table/started")
        assert "src/objects.ts:6 looks up members of Api" in await refusal(ask, "Api/called")
        assert "src/objects.ts:2 looks up members of listed" in await refusal(ask, "listed/inList")
        for name in ("fixed/stopped", "Plain/idle"):
            assert not await refusal(ask, name), name


BLANKS = " " * 20_000

HOSTILE = {
    "package.json": PRIVATE,
    "tsconfig.json": TSCONFIG,
    "src/keys.ts": exporting("inKeys"),
    "src/objects.ts": "const table = { idle() { return 1; } };\nconsole.log(table);\n"
    f"class Plain {{\n  run() {{ return 1; }} // this{BLANKS}\n}}\nconsole.log(new Plain());\n",
    "src/main.ts": f"""\
import {{ keys }} from "keys"; // table{BLANKS}, import({BLANKS}
// {"import " * 10_000}
// {"const a: " * 5_000}
// {"table[" * 5_000}
console.log(keys);
""",
}


async def test_no_text_takes_long_to_be_searched_for_what_is_looked_up(tmp_path: Path) -> None:
    """Expressions that try each way to divide blanks or a line among their parts take hours for these."""
    async with asker(tmp_path, written(tmp_path / "shop", HOSTILE)) as ask:
        assert not await refusal(ask, "inKeys")
        assert not await refusal(ask, "Plain/run")
        assert "src/main.ts:3 looks up members of table" in await refusal(ask, "table/idle")


FRAMEWORKS = {
    "tsconfig.json": TSCONFIG,
    "web/package.json": '{"name": "web", "private": true, "dependencies": {"next": "15.0.0"}}',
    "web/app/users/route.ts": f"{exporting('GET')}function ownOfRoute() {{ return 1; }}\n",
    "web/app/page.tsx": "export default function Page() { return null; }\n",
    "web/app/parts.ts": exporting("inParts"),
    "web/shop.config.ts": "function configured() { return 1; }\nexport default configured;\n",
    "kit/package.json": '{"name": "kit", "private": true, "devDependencies": {"@sveltejs/kit": "2.0.0"}}',
    "kit/src/routes/+page.ts": exporting("load"),
    "kit/src/lib/page.ts": exporting("inLib"),
    "remix/package.json": '{"name": "r", "private": true, "dependencies": {"@remix-run/node": "2.0.0"}}',
    "remix/app/routes/users.tsx": exporting("loader"),
    "bare/package.json": '{"name": "bare", "private": true}',
    "bare/app/page.tsx": exporting("alone"),
}


async def test_what_frameworks_use_of_a_file_that_they_load_by_its_path_is_kept(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", FRAMEWORKS)) as ask:
        loaders = {"GET": "next", "Page": "next", "configured": "a tool", "load": "@sveltejs/kit"}
        for name, loader in {**loaders, "loader": "@remix-run/node"}.items():
            assert f"{loader} loads its file by the path" in await refusal(ask, name), name
        for name in ("ownOfRoute", "inParts", "inLib", "alone"):
            assert not await refusal(ask, name), name
        found = await ask.ask("find_unused_symbols")
        assert {one["name_path"] for one in found["unused"]} == {"ownOfRoute", "inParts", "inLib", "alone"}
        for name, is_told in {"GET": True, "Page": False}.items():
            renamed = await ask.result("rename_symbol", name_path=name, new_name="Other", dry_run=True)
            assert ("loads its file by the path" in text_of(renamed)) is is_told, name


WHOLE = {
    "tsconfig.json": '{"compilerOptions": {"target": "es2022", "module": "nodenext"}}',
    "package.json": '{"private": true, "type": "module"}',
    "whole.ts": """\
enum Listed { A = "a" }
console.log(Object.values(Listed));
enum Checked { A = "a" }
const schema = { nativeEnum(of: object) {} };
schema.nativeEnum(Checked);
enum Column { A = "a" }
console.log({ enum: Column });
enum Reversed { A, B }
console.log(Reversed[Number(process.argv[2])]);
enum Typed { A = "a" }
console.log((of: Typed, all: Map<Typed, Typed>) => of);
function take(Typed: number) { return Typed; }
console.log(take(1));
class Static { static one() {} }
console.log((Static as any)[process.argv[2]]());
class Plain { static one() {} }
console.log(new Plain(), [Plain]);
const own: any = { second() {}, go(key: string) { this[key](); } };
own.go("x");
interface Parts { width: number; height: number }
type Of<K extends keyof Parts> = Parts[K];
declare const of: Of<any>;
console.log(of);
""",
}


async def test_members_of_an_enumeration_a_class_or_an_object_that_is_used_whole_are_kept(tmp_path: Path) -> None:
    found = {"Listed/A": 1, "Checked/A": 4, "Column/A": 6, "Reversed/B": 8, "Static/one": 14, "own/second": 17}
    async with asker(tmp_path, written(tmp_path / "shop", WHOLE)) as ask:
        for name_path, line0 in found.items():
            refused = text_of(await ask.result("safe_delete_symbol", name_path=name_path))
            assert f"whole.ts:{line0} looks up members of {name_path.partition('/')[0]}" in refused, refused
        for name_path in ("Typed/A", "Plain/one", "Parts/width"):
            deleted = await ask.result("safe_delete_symbol", name_path=name_path, dry_run=True)
            assert not deleted["isError"], text_of(deleted)
