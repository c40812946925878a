"""What one place names together must keep one name: members of the types of a union, with real language servers."""

import json
from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

PETS = """\
class Cat:
    sound = "miau"

    def speak(self) -> str:
        return "x"

    def purr(self) -> str:
        return self.speak()


class Dog:
    sound = "wuff"

    def speak(self) -> str:
        return "y"

    def purr(self) -> str:
        return self.speak()


def talk(pet: Cat | Dog) -> str:
    return pet.speak() + pet.sound


print(talk(Cat()), talk(Dog()), Cat().purr())
"""


@pytest.mark.parametrize(
    ("member", "place", "other"), [("speak", 21, "13 in Dog/speak"), ("sound", 21, "11 in Dog/sound")]
)
async def test_a_member_of_one_type_of_a_union_is_not_renamed_alone_in_python(
    tmp_path: Path, member: str, place: int, other: str
) -> None:
    root = written(tmp_path / "pets", {"pets.py": PETS})
    rename = {"name_path": f"Cat/{member}", "relative_path": "pets.py", "new_name": "fresh"}
    async with asker(tmp_path, root) as client:
        refused = await client.result("rename_symbol", **rename)
        assert refused["isError"], text_of(refused)
        assert f"pets.py:{place} in talk' may mean Cat/{member} or 'pets.py:{other}'" in text_of(refused)
        assert (root / "pets.py").read_text() == PETS
        for type_name in ("Cat", "Dog"):
            rename["name_path"] = f"{type_name}/{member}"
            renamed = await client.result("rename_symbol", **rename, force=True)
            assert not renamed["isError"], text_of(renamed)
        assert member not in (root / "pets.py").read_text()
        alone = await client.result("rename_symbol", name_path="Cat/purr", relative_path="pets.py", new_name="hum")
    assert not alone["isError"], text_of(alone)


TYPES = """\
export type Asked = { query(): string; fn?: never };
export type Told = { query?: never; fn(): string };
export interface Cat { kind: "cat"; name: string; lives: number }
export interface Dog { kind: "dog"; name: string }
"""

USES = """\
import { Asked, Cat, Dog, Told } from "./types.js";

export function run(one: Asked | Told): string {
  return one.query ? one.query() : one.fn!();
}

run({ query: () => "x" });

export function called(pet: Cat | Dog): string {
  const { name } = pet;
  return pet.kind === "cat" ? pet.name + pet.lives : name;
}

const lives = 9;
export const felix: Cat = { kind: "cat", name: "Felix", lives };
const pets: (Cat | Dog)[] = [felix];
export const { name } = pets[0]!;
export const tom = (lives: number): Cat => ({ kind: "cat", name: "Tom", lives });
"""


async def test_a_member_of_one_type_of_a_union_is_not_renamed_alone_in_typescript(tmp_path: Path) -> None:
    config = json.dumps({"compilerOptions": {"module": "nodenext", "strict": True, "noEmit": True}, "include": ["src"]})
    files = {"tsconfig.json": config, "src/types.ts": TYPES, "src/uses.ts": USES}
    root = written(tmp_path / "pets", {**files, "package.json": '{"type": "module"}'})
    async with asker(tmp_path, root) as client:
        for name_path, path, others in (
            ("Cat/name", "src/types.ts", "'src/types.ts:3 in Dog/name'"),
            ("Dog/kind", "src/types.ts", "'src/types.ts:2 in Cat/kind'"),
            ("query", "src/uses.ts", "'src/types.ts:1 in Told'"),
        ):
            refused = await client.result(
                "rename_symbol", name_path=name_path, relative_path=path, new_name="fresh", dry_run=True
            )
            assert refused["isError"], (name_path, text_of(refused))
            assert f"may mean {name_path} or {others}, such as members of the types of a union" in text_of(refused)
        alone = await client.result(
            "rename_symbol", name_path="Cat/lives", relative_path="src/types.ts", new_name="nine"
        )
        assert not alone["isError"], text_of(alone)
        for variable, new_name in (("lives", "count"), ("name", "called_so")):
            rename = {"name_path": variable, "relative_path": "src/uses.ts", "new_name": new_name}
            renamed = await client.result("rename_symbol", **rename)
            assert not renamed["isError"], text_of(renamed)
    text = (root / "src/uses.ts").read_text()
    assert 'name: "Felix", nine: count }' in text
    assert "export const { name: called_so } = pets[0]!;" in text


HELD = {
    "jsconfig.json": "{}",
    "made.js": """\
const run = () => 1;
class Box { static run = run; }
const parts = { run: run };
module.exports = { parts, Box, run };
""",
    "use.js": """\
const { parts, Box, run: go } = require("./made");
const all = require("./made");
console.log(parts.run(), Box.run(), go(), all.run());
""",
}


@pytest.mark.parametrize(
    ("name_path", "changes"),
    [
        ("parts/run", {"{ run: run }": "{ fresh: run }", "parts.run()": "parts.fresh()"}),
        ("Box/run", {"static run =": "static fresh =", "Box.run()": "Box.fresh()"}),
        (
            "run",
            {
                "const run =": "const fresh =",
                "static run = run": "static run = fresh",
                "{ run: run }": "{ run: fresh }",
                "Box, run }": "Box, run: fresh }",
            },
        ),
    ],
)
async def test_a_function_and_what_holds_it_under_its_name_are_renamed_apart(
    tmp_path: Path, name_path: str, changes: dict[str, str]
) -> None:
    """Where it is called by that, the server names the declarations of both."""
    root = written(tmp_path / "held", HELD)
    async with asker(tmp_path, root) as client:
        renamed = await client.result("rename_symbol", name_path=name_path, relative_path="made.js", new_name="fresh")
    assert not renamed["isError"], text_of(renamed)
    expected = {path: HELD[path] for path in ("made.js", "use.js")}
    for old, new in changes.items():
        expected = {path: text.replace(old, new) for path, text in expected.items()}
    assert {path: (root / path).read_text() for path in expected} == expected


async def test_a_variable_for_what_a_module_exports_is_renamed_alone(tmp_path: Path) -> None:
    files = {
        "jsconfig.json": "{}",
        "run.js": "const run = () => 1;\nmodule.exports = run;\n",
        "use.js": 'const run = require("./run");\nmodule.exports = () => run() + run.length;\n',
    }
    root = written(tmp_path / "held", files)
    async with asker(tmp_path, root) as client:
        renamed = await client.result("rename_symbol", name_path="run", relative_path="use.js", new_name="fresh")
        assert not renamed["isError"], text_of(renamed)
        assert (root / "run.js").read_text() == files["run.js"]
        expected = 'const fresh = require("./run");\nmodule.exports = () => fresh() + fresh.length;\n'
        assert (root / "use.js").read_text() == expected


BARREL = {
    "jsconfig.json": "{}",
    "cut.js": "const cut = (text) => text.trim();\nmodule.exports = cut;\n",
    "index.js": 'const cut = require("./cut");\nmodule.exports = { cut };\n',
    "use.js": 'const all = require("./index");\nconsole.log(all.cut(" x "));\n',
    "pick.js": 'const cut = require("./index").cut;\nconsole.log(cut(" z "));\n',
    "take.js": 'const { cut } = require("./index");\nconsole.log(cut(" y "));\n',
}


async def test_what_a_module_hands_on_in_an_object_keeps_its_name_there(tmp_path: Path) -> None:
    """A call through the object leads to the function alone."""
    root = written(tmp_path / "barrel", BARREL)
    async with asker(tmp_path, root) as client:
        renamed = await client.result("rename_symbol", name_path="cut", relative_path="cut.js", new_name="fresh")
    assert not renamed["isError"], text_of(renamed)
    expected = BARREL | {
        "cut.js": BARREL["cut.js"].replace("cut", "fresh"),
        "index.js": 'const fresh = require("./cut");\nmodule.exports = { cut: fresh };\n',
    }
    assert {path: (root / path).read_text() for path in expected} == expected
