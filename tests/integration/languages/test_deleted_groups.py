"""What goes with a deleted symbol: what it groups, not while that is in use, and a call; with real language servers."""

from pathlib import Path

import pytest

from tests.integration.languages.test_renamed_members import written
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

RUST = {
    "Cargo.toml": '[package]\nname = "grouped"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """\
mod idle {
    fn never() {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
""",
}
CPP = {
    "compile_flags.txt": "-std=c++20\n",
    "a.cpp": """\
namespace shop {
int used() { return 1; }
}
namespace shop {
int user() { return used(); }
}
namespace idle {
static int never() { return 1; }
}
int main() { return shop::user(); }
""",
}


@pytest.mark.parametrize(
    ("files", "path", "kept", "said"),
    [
        (
            RUST,
            "src/lib.rs",
            "tests",
            "tests/works would be deleted with it: It may be referenced from elsewhere: it is decorated",
        ),
        (CPP, "a.cpp", "shop[0]", "would be deleted with it: It is referenced in a.cpp:4"),
    ],
    ids=["rust", "cpp"],
)
async def test_a_group_is_not_deleted_while_a_member_is_in_use(
    tmp_path: Path, files: dict[str, str], path: str, kept: str, said: str
) -> None:
    root = tmp_path / "grouped"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    async with asker(tmp_path, root) as ask:
        refused = await ask.result("safe_delete_symbol", name_path=kept, relative_path=path)
        assert refused["isError"], text_of(refused)
        assert said in text_of(refused)
        assert (root / path).read_text() == files[path]
        deleted = await ask.result("safe_delete_symbol", name_path="idle", relative_path=path)
    assert not deleted["isError"], text_of(deleted)
    assert "never" not in (root / path).read_text()


CALLS = {
    "plugins.py": """\
import names


def listed(name): return names.add(name)


first = listed("a")
second = lambda: listed("b")
third = ["listed(1)", "COUNT(*)"]  # of listed()
""",
    "names.py": "all_names = set()\n\n\ndef add(name): all_names.add(name)\n",
    "plugins.ts": """\
function listed(name: string) { return name.length }
const first = listed("a")
const second = () => listed("b")
class Holder {
  private third = listed("c")
  private get fourth() { const found = listed("d"); return found }
}
const fifth = { run() { return listed("e") } }
export const held = new Holder()
const sixth = listed`d`
const seventh = () => [listed`d`, `${fifth.run()}`]
const eighth = `listed(${1 + 2})`
""",
}


async def test_a_call_that_goes_with_a_variable_is_noted(tmp_path: Path) -> None:
    """What registers something often returns it, and nobody reads the variable."""
    root = written(tmp_path / "shop", CALLS)
    async with asker(tmp_path, root) as client:
        for name_path, path, line in (
            ("sixth", "plugins.ts", 9),
            ("first", "plugins.py", 6),
            ("second", "plugins.py", None),
            ("Holder/third", "plugins.ts", 4),
            ("first", "plugins.ts", 1),
            ("second", "plugins.ts", None),
            ("third", "plugins.py", None),
            ("Holder/fourth", "plugins.ts", None),
            ("seventh", "plugins.ts", None),
            ("eighth", "plugins.ts", None),
            ("fifth", "plugins.ts", None),
        ):
            deleted = await client.result("safe_delete_symbol", name_path=name_path, relative_path=path)
            assert not deleted["isError"], text_of(deleted)
            _, _, noted = str(deleted["content"]).partition(" got its value from a call in ")
            assert (f"{path}:{line}, which is no longer made" in noted) if line is not None else not noted, deleted


RUN = {
    "parts.py": """\
def listed(name): ...


class First:
    width = listed("a")

    if True:
        listed("b")


class Second:
    width = listed("c")

    def run(self): listed("d")
""",
    "parts.ts": """\
function listed(it: unknown) { return it }
class Third {
  static { listed("c") }
}
class Fourth {
  private it = listed("a")
  private run() { return listed(this.it) }
}
namespace Fifth {
  listed("b")
}
const sixth = class { static it = listed("d") }
class Kept {
  static { listed(this) }
}
export {}
""",
    "compile_flags.txt": "-std=c++20\n",
    "parts.cpp": """\
#include <vector>
struct Registrar { Registrar(int) {} };
struct Plain { int x; };
static Registrar seventh{1};
static Plain eighth{1};
static std::vector<int> ninth{1, 2};
namespace tenth { Registrar own = 3; }
static Registrar* eleventh = nullptr;
int main() { return 0; }
""",
}


async def test_what_runs_where_a_deleted_class_or_object_stands_is_noted(tmp_path: Path) -> None:
    made = {
        "First": "a call where it was declared, in parts.py:7",
        "Third": "a call where it was declared, in parts.ts:2",
        "Fifth": "a call where it was declared, in parts.ts:9",
        "sixth": "a call where it was declared, in parts.ts:11",
        "seventh": "by a constructor of Registrar (parts.cpp:1) when",
        "tenth": "by a constructor of Registrar (parts.cpp:1) when",
    }
    async with asker(tmp_path, written(tmp_path / "shop", RUN)) as client:
        for name_path in (*made, "Second", "Fourth", "eighth", "ninth", "eleventh"):
            deleted = await client.result("safe_delete_symbol", name_path=name_path, dry_run=True)
            assert not deleted["isError"], text_of(deleted)
            _, _, noted = str(deleted["content"]).partition(f"{name_path} made ")
            _, _, built = str(deleted["content"]).partition(f"{name_path} was made ")
            assert made[name_path] in noted + built if name_path in made else not noted + built, deleted
        refused = await client.result("safe_delete_symbol", name_path="Kept")
        assert "it hands itself to a call where it is declared" in text_of(refused)
        assert "Kept" not in str((await client.result("find_unused_symbols"))["content"])


ASSIGNED = {
    "app.js": "const app = module.exports = {};\nconst other = (globalThis.other = 1);\nconst own = { a: 1 };\n",
    "app.py": "import json\n\nmine = json.mine = 1\n",
}


async def test_a_variable_is_not_deleted_with_the_value_that_it_gives_something_else(tmp_path: Path) -> None:
    async with asker(tmp_path, written(tmp_path / "shop", ASSIGNED)) as client:
        for name, target in (("app", "module.exports"), ("other", "globalThis.other"), ("mine", "json.mine")):
            refused = await client.result("safe_delete_symbol", name_path=name, force=True)
            assert refused["isError"], text_of(refused)
            assert f"its value is an assignment to {target}, which would go with it" in text_of(refused)
        deleted = await client.result("safe_delete_symbol", name_path="own")
        assert not deleted["isError"], text_of(deleted)


DECLARED_TWICE = {
    "shop.py": "def spare(): ...\n",
    "shop.pyi": "def spare() -> None: ...\n",
    "lib.js": "function own() {}\nexport class Box { spare() {} }\n",
    "lib.d.ts": "export declare class Box { spare(): void }\n",
    "use.ts": 'import { Box } from "./lib.js";\nconsole.log(new Box());\n',
}


async def test_what_goes_on_declaring_a_deleted_symbol_is_noted(tmp_path: Path) -> None:
    root = written(tmp_path / "shop", DECLARED_TWICE)
    async with asker(tmp_path, root) as client:
        for name_path, path, other in (
            ("spare", "shop.py", "shop.pyi:0"),
            ("Box/spare", "lib.js", "lib.d.ts:0"),
            ("own", "lib.js", None),
        ):
            deleted = await client.result("safe_delete_symbol", name_path=name_path, relative_path=path)
            assert not deleted["isError"], text_of(deleted)
            _, _, noted = str(deleted["content"]).partition("is still declared in ")
            assert other in noted if other else not noted, deleted
