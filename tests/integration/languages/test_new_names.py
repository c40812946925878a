"""A new name that is a keyword, is declared already or stands in code: refused or noted, with real language servers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.projects.navigation import same_hierarchy
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

PYTHON = {
    "a.py": (
        "def foo():\n    return 1\n\n\ndef bar():\n    return foo()\n\n\n"
        "class K:\n    def m(self):\n        return self.n()\n\n    def n(self):\n        return 1\n"
    ),
    "b.py": "from a import foo\n\n\ndef baz(word):\n    return foo() + word.other  # other\n",
    "c.py": "from a import K\n\n\nclass L(K):\n    pass\n",
    "d.py": (
        "from c import L\n\n\nclass M(L):\n    def more(self):\n        return 2\n\n\n"
        "class Other:\n    def free(self):\n        return 3\n"
    ),
    "e.py": "import a\n\n\nclass K(a.K):\n    def own(self):\n        return 4\n",
}
TYPESCRIPT = {
    "tsconfig.json": "{}",
    "a.ts": (
        "function foo() { return 1; }\nexport function bar(x: number) { const foo2 = 3; return foo() + foo2 + x; }\n"
        "export class K { m() { return 1; } }\nexport class L extends K { more() { return 2; } }\n"
    ),
}
RUST = {
    "Cargo.toml": '[package]\nname = "r"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": (
        "pub struct T;\nimpl T {\n    pub fn go(&self) -> i32 { 1 }\n}\n"
        "impl T {\n    pub fn dead(&self) -> i32 { 2 }\n}\n"
    ),
}
GO = {
    "go.mod": "module example.com/g\n\ngo 1.21\n",
    "a.go": "package g\n\nfunc foo() int { return 1 }\n",
    "b.go": "package g\n\nfunc bar() int { return foo() }\n",
}


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"])


C = {
    "compile_flags.txt": "",
    "part.h": "#define LIMIT 3\nextern int counter;\nint run(int x);\n",
    "run.c": '#include "part.h"\nint counter;\nstatic int helper(int x) { return x; }\n'
    "int run(int x) { return helper(x) + counter; }\n",
    "walk.c": "static int helper(int x) { return x; }\nstatic int aside;\nint walk(void) { return helper(aside); }\n"
    "struct step { int size; };\n",
}


async def test_a_name_of_c_that_another_file_links_or_defines_is_refused(tmp_path: Path) -> None:
    root = _project(tmp_path, C)
    refusals = [
        ("run.c", "counter", "walk", "already declares walk: walk.c:2"),
        ("walk.c", "helper", "run", "already declares run: part.h:2"),
        ("walk.c", "step/size", "LIMIT", "A macro has that name: part.h:0"),
    ]
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            for path, name_path, new, why in refusals:
                refused = await asked.result("rename_symbol", name_path=name_path, relative_path=path, new_name=new)
                assert why in text_of(refused), name_path
            for path, name_path, new in (("run.c", "helper", "aside"), ("walk.c", "step", "counted")):
                made = await asked.result("rename_symbol", name_path=name_path, relative_path=path, new_name=new)
                assert not made["isError"], text_of(made)


@pytest.mark.parametrize(
    ("files", "renames"),
    [
        (
            PYTHON,
            [
                *(
                    ("a.py", "foo", "bar", "a.py:4"),
                    ("a.py", "K/m", "n", "a.py:12"),
                    ("a.py", "foo", "class", "python"),
                ),
                *(("d.py", "M/more", "n", "K/n in a.py"), ("a.py", "K/n", "more", "M/more in d.py")),
                ("e.py", "K/own", "n", "K/n in a.py"),
            ],
        ),
        (
            TYPESCRIPT,
            [
                *(("a.ts", "foo", "bar", "a.ts:1"), ("a.ts", "foo", "class", "typescript")),
                *(("a.ts", "L/more", "m", "K/m in a.ts"), ("a.ts", "K/m", "toString", "a member toString")),
            ],
        ),
        (RUST, [("src/lib.rs", "T/go", "dead", "src/lib.rs:5"), ("src/lib.rs", "T", "impl", "rust")]),
        (GO, [("a.go", "foo", "bar", "b.go:2"), ("a.go", "foo", "func", "go")]),
    ],
    ids=["python", "typescript", "rust", "go"],
)
async def test_a_keyword_or_a_name_that_the_container_declares_is_refused(
    tmp_path: Path, files: dict[str, str], renames: list[tuple[str, str, str, str]]
) -> None:
    root = _project(tmp_path, files)
    with anyio.fail_after(240):
        async with asker(tmp_path, root) as asked:
            for path, name_path, new_name, named in renames:
                refused = await asked.result(
                    "rename_symbol", name_path=name_path, relative_path=path, new_name=new_name
                )
                assert refused["isError"], (name_path, new_name)
                assert "Nothing was changed" in text_of(refused)
                assert named in text_of(refused)
                assert "force=true" in text_of(refused)
    assert {path: (root / path).read_text() for path in files} == files


async def test_a_taken_name_is_given_by_force_and_told(tmp_path: Path) -> None:
    root = _project(tmp_path, PYTHON)
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            made = await asked.result("rename_symbol", name_path="K/m", relative_path="a.py", new_name="n", force=True)
    assert not made["isError"], text_of(made)
    assert "Renamed despite: K already declares n: a.py:12." in text_of(made)
    assert (root / "a.py").read_text().count("def n(") == 2


async def test_a_members_name_is_refused_while_it_is_not_known_whether_related_types_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_hierarchy, "KIN_S", 0.0)
    root = _project(tmp_path, PYTHON)
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            place: dict[str, Any] = {"name_path": "Other/free", "relative_path": "d.py", "new_name": "more"}
            refused = await asked.client.call("rename_symbol", **place)
            assert refused["isError"]
            assert "another member more, or be overridden or hidden, could not be determined in time" in text_of(
                refused
            )
            assert not (await asked.client.call("rename_symbol", **place, force=True))["isError"]


async def test_a_name_that_members_of_other_types_have_is_given(tmp_path: Path) -> None:
    root = _project(tmp_path, PYTHON)
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            made = await asked.result("rename_symbol", name_path="Other/free", relative_path="d.py", new_name="more")
    assert not made["isError"], text_of(made)


async def test_what_the_server_does_not_rename_and_nothing_else_names_keeps_its_name(tmp_path: Path) -> None:
    files = {
        "tsconfig.json": "{}",
        "box.ts": (
            "export class Box { constructor(public size: number) {} }\nexport const box = new Box(1);\n"
            "declare global { interface Window { box: Box } }\n"
        ),
        "whole.js": "module.exports = (deep) => deep;\n",
        "lost.js": "const api = exports = module.exports = {};\napi.run = (deep) => deep && api.run();\n",
    }
    root = _project(tmp_path, files)
    places = [("box.ts", "Box/constructor"), ("box.ts", "global"), ("lost.js", "run")]
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            for path, name_path in places:
                refused = await asked.result("rename_symbol", name_path=name_path, relative_path=path, new_name="other")
                assert refused["isError"], name_path
                assert f"does not rename {name_path}" in text_of(refused)
            refused = await asked.result(
                "rename_symbol", name_path="exports", relative_path="whole.js", new_name="other"
            )
            assert "module.exports in whole.js:0 is a name of Node's" in text_of(refused)
    assert {path: (root / path).read_text() for path in files} == files


async def test_a_component_that_is_a_tag_gets_no_name_of_an_element(tmp_path: Path) -> None:
    files = {
        "jsconfig.json": '{"compilerOptions": {"jsx": "preserve"}}',
        "box.jsx": (
            "export const Box = () => null;\nexport const Idle = () => null;\nexport const parts = { Box: Box };\n"
        ),
        "page.jsx": (
            'import { Box, Idle, parts } from "./box";\nexport const page = () => <Box><parts.Box /></Box>;\nIdle();\n'
        ),
    }
    root = _project(tmp_path, files)
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            refused = await asked.result("rename_symbol", name_path="Box", relative_path="box.jsx", new_name="box")
            assert "Box is a tag in page.jsx:1, and JSX takes a tag" in text_of(refused), text_of(refused)
            for name_path, new_name in (("Idle", "idle"), ("parts/Box", "box"), ("Box", "Case")):
                renamed = await asked.result(
                    "rename_symbol", name_path=name_path, relative_path="box.jsx", new_name=new_name
                )
                assert not renamed["isError"], text_of(renamed)
    assert (root / "page.jsx").read_text() == (
        'import { Case, idle, parts } from "./box";\nexport const page = () => <Case><parts.box /></Case>;\nidle();\n'
    )


async def test_where_the_new_name_stands_in_code_of_a_changed_file_is_told(tmp_path: Path) -> None:
    root = _project(tmp_path, PYTHON | TYPESCRIPT)
    with anyio.fail_after(240):
        async with asker(tmp_path, root) as asked:
            captured = await asked.result("rename_symbol", name_path="foo", relative_path="a.py", new_name="word")
            assert "capture or shadowing: b.py:3, b.py:4" in text_of(captured)
            qualified = await asked.result("rename_symbol", name_path="word", relative_path="a.py", new_name="other")
            assert "capture or shadowing" not in text_of(qualified)
            shadowed = await asked.result("rename_symbol", name_path="foo", relative_path="a.ts", new_name="foo2")
            assert "capture or shadowing: a.ts:1" in text_of(shadowed)
            member = await asked.result("rename_symbol", name_path="K/m", relative_path="a.ts", new_name="delete")
            assert not member["isError"], text_of(member)


def _project(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "project"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
