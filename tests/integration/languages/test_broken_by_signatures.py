"""An edit of what others rely on says what it broke, whatever kind of declaration it is, with real language servers."""

import json
from pathlib import Path

import anyio
import pytest

from tests.support.languages import asker

pytestmark = pytest.mark.anyio

TYPESCRIPT = {
    "tsconfig.json": '{"compilerOptions":{"module":"nodenext","strict":true,"noEmit":true},"include":["."]}',
    "package.json": '{"type":"module"}',
    "a.ts": (
        "export function f(): { a: number } {\n  return { a: 1 };\n}\nexport interface I {\n  p: number;\n}\n"
        "export const c: number = 1;\nexport const g = (x: number): number => x;\nexport type T = { q: number };\n"
        "export function gen<T extends { a: number }>(x: T): T { return x; }\n"
    ),
    "b.ts": (
        'import { f, c, g, gen } from "./a.js";\nimport type { I, T } from "./a.js";\n'
        "export const u: number = f().a;\n"
        "export const i: I = { p: 1 };\nexport const d: number = c;\nexport const h: number = g(1);\n"
        "export const t: T = { q: 1 };\nexport const k = gen({ a: 1 });\n"
    ),
}
PYTHON = {
    "a.py": (
        "class A:\n    @property\n    def prop(self) -> int:\n        return 1\n\n    val: int = 1\n\n\n"
        "CONST: int = 1\n"
    ),
    "b.py": "from a import CONST, A\n\nx: int = A().prop + 1\nz: int = A().val\nw: int = CONST\n",
}


@pytest.mark.parametrize(
    ("files", "edits"),
    [
        (
            TYPESCRIPT,
            [
                ("f(): { a", "f(): { b"),
                ("p: number;", "p: number;\n  r: number;"),
                ("p: number;", "p: string;"),
                ("c: number = 1", 'c: string = "a"'),
                ("(x: number): number => x;", "(x: string): number => 1;"),
                ("{ q: number }", "{ z: number }"),
                ("<T extends { a: number }>", "<T extends { b: number }>"),
            ],
        ),
        (
            PYTHON,
            [
                ("    @property\n    def", "    def"),
                ("val: int = 1", 'val: str = "a"'),
                ("CONST: int = 1", 'CONST: str = "a"'),
            ],
        ),
    ],
    ids=["typescript", "python"],
)
async def test_errors_elsewhere_are_told_with_the_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], edits: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr("serena_central.projects.editing.edit_effects.SYMBOLS_S", 60.0)
    root = tmp_path / "project"
    root.mkdir()
    for path, text in files.items():
        (root / path).write_text(text)
    *_, edited, user = files
    with anyio.fail_after(240):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            await asked.ask("get_symbols_overview", relative_path=edited)
            await asked.ask("get_symbols_overview", relative_path=user)
            for old, new in edits:
                for needle, repl in ((old, new), (new, old)):
                    made = await asked.result(
                        "replace_content", relative_path=edited, needle=needle, repl=repl, mode="literal"
                    )
                    answer = json.loads(made["content"][0]["text"])
                    broken = answer.get("may_have_broken", {}).get("project", {}).get("errors_where_used", {})
                    assert (user in broken) == (repl == new), (needle, repl, answer)


async def test_files_that_were_not_asked_for_errors_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("CONST: int = 1\n")
    for number in range(10):
        uses = "".join(f"{name}: int = CONST\n" for name in ("x", "y")[: 1 + (number == 9)])
        (root / f"user_{number}.py").write_text(f"from a import CONST\n\n{uses}")
    with anyio.fail_after(120):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            await asked.result("get_symbols_overview", relative_path="a.py")
            made = await asked.result(
                "replace_content", relative_path="a.py", needle="int = 1", repl="str = 'a'", mode="literal"
            )
    answer, *notes = (part["text"] for part in made["content"])
    broken = json.loads(answer)["may_have_broken"]["project"]["errors_where_used"]
    assert list(broken) == [f"user_{number}.py" for number in (0, 1, 2, 3, 4, 5, 6, 9)]
    assert "were checked in 8 of 10 files that reference the changed symbols" in "\n".join(notes)


async def test_nobody_is_asked_who_refers_to_a_heading(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".serena").mkdir(parents=True)
    (root / ".serena/project.yml").write_text("languages: [python, markdown]\n")
    (root / "notes.md").write_text("# Notes\n\n## Usage\n\ntext\n")
    (root / "other.md").write_text("Usage\n")
    with anyio.fail_after(120):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            await asked.result("get_symbols_overview", relative_path="notes.md")
            made = await asked.result(
                "replace_content", relative_path="notes.md", needle="## Usage", repl="## Use", mode="literal"
            )
    answer, *notes = (part["text"] for part in made["content"])
    assert not made["isError"], answer
    assert "may_have_broken" not in answer
    assert "were not checked" not in "\n".join(notes)


POSITIONS = {
    "go": (
        {
            "go.mod": "module example.com/g\n\ngo 1.21\n",
            "a.go": "package g\n\ntype Pair struct {\n\tLeft, Right int\n}\n\nfunc Sum(a, b int) int { return a }\n",
            "b.go": "package g\n\nvar x = Pair{1, 2}\nvar y = Pair{Left: 1}\nvar z = Sum(1, 2)\n",
        },
        [("Left, Right int", "Right, Left int", ["2: Pair"]), ("Sum(a, b", "Sum(b, a", ["4: Sum"])],
    ),
    "rust": (
        {
            "Cargo.toml": '[package]\nname = "r"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/a.rs": "pub struct Two(pub i32, pub u8);\npub fn sum(a: i32, b: i32) -> i32 {\n    a - b\n}\n",
            "src/lib.rs": (
                "pub mod a;\nuse a::{sum, Two};\npub fn f() -> i32 {\n    let Two(x, _) = Two(1, 2);\n    sum(x, 2)}\n"
            ),
        },
        [("(pub i32, pub u8)", "(pub u8, pub i32)", ["3: Two", "3: Two"]), ("(a: i32, b", "(b: i32, a", ["4: sum"])],
    ),
    "python": (
        {
            "a.py": (
                "from dataclasses import dataclass\n\n\n@dataclass\nclass Pair:\n    left: int\n    right: int\n\n\n"
                "def total(a, b):\n    return a - b\n\n\n"
                "class Box:\n    def __init__(self, a, b):\n        self.a = a - b\n"
            ),
            "b.py": "from a import Box, Pair, total\n\nx = Pair(1, 2)\ny: Pair = x\nz = total(1, 2), Box(1, 2)\n",
        },
        [
            ("    left: int\n    right: int\n", "    right: int\n    left: int\n", ["2: Pair"]),
            ("total(a, b)", "total(b, a)", ["4: total"]),
            ("__init__(self, a, b)", "__init__(self, b, a)", ["4: Box"]),
        ],
    ),
    "typescript": (
        {
            "tsconfig.json": TYPESCRIPT["tsconfig.json"],
            "package.json": TYPESCRIPT["package.json"],
            "a.ts": (
                "export class Box {\n  constructor(public a: number, public b: number) {}\n}\n"
                "export function total(a: number, b: number): number {\n  return a - b;\n}\n"
            ),
            "b.ts": 'import { Box, total } from "./a.js";\n\nexport const x = new Box(1, 2);\nconst y = total(1, 2);\n',
        },
        [
            ("total(a: number, b", "total(b: number, a", ["3: total"]),
            ("public a: number, public b", "public b: number, public a", ["2: Box"]),
        ],
    ),
}
"""Language → files, the last of which hands values by position to what the one before declares; edits that no server
calls an error."""


@pytest.mark.parametrize("language", POSITIONS)
async def test_values_handed_by_position_are_named_when_their_order_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr("serena_central.projects.editing.edit_effects.SYMBOLS_S", 60.0)
    files, edits = POSITIONS[language]
    root = tmp_path / "project"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    *_, edited, user = files
    with anyio.fail_after(240):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            for path in (edited, user):
                await asked.result("get_symbols_overview", relative_path=path)
            for needle, repl, expected in edits:
                change = {"relative_path": edited, "needle": needle, "repl": repl, "mode": "literal"}
                made = await asked.result("replace_content", **change)
                answer = json.loads(made["content"][0]["text"])
                broken = answer.get("may_have_broken", {}).get("project", {})
                assert broken.get("values_by_position", {}).get(user) == expected, made["content"]


async def test_positional_patterns_are_named_when_the_order_of_match_args_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.editing.edit_effects.SYMBOLS_S", 60.0)
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text(
        'class Pair:\n    __match_args__ = ("left", "right")\n    left: int = 0\n    right: int = 0\n'
    )
    (root / "b.py").write_text(
        "from a import Pair\n\n\ndef f(one: object) -> int:\n    match one:\n        case Pair(x, 2):\n"
        "            return x\n        case Pair(left=3):\n            return 3\n    return 0\n"
    )
    with anyio.fail_after(240):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            listed = await asked.result("find_referencing_symbols", name_path="Pair/left", relative_path="a.py")
            assert "b.py:7 in f" in listed["content"][1]["text"]
            planned = await asked.result("rename_symbol", name_path="Pair/left", new_name="first", dry_run=True)
            assert "b.py:7" in planned["content"][1]["text"]
            refused = await asked.result("safe_delete_symbol", name_path="Pair/right", relative_path="a.py")
            assert (
                "may receive its value as a positional argument where Pair is used: b.py:5"
                in refused["content"][0]["text"]
            )
            change = {"needle": '("left", "right")', "repl": '("right", "left")', "mode": "literal"}
            made = await asked.result("replace_content", relative_path="a.py", **change)
    broken = json.loads(made["content"][0]["text"])["may_have_broken"]["project"]
    assert broken["values_by_position"] == {"b.py": ["5: Pair", "7: Pair"]}


NUMBERED = {
    "kinds.go": "package p\n\nconst (\n\tA = iota\n\tB\n\tC\n)\n",
    "kinds.h": "enum kind { A, B, C };\n",
    "kinds.ts": "export enum Kind { A, B, C }\n",
    "kinds.rs": "pub enum Kind { A, B, C }\n",
    "kinds.py": (
        "import enum\n\n\nclass Kind(enum.Enum):\n    A = enum.auto()\n    B = enum.auto()\n    C = enum.auto()\n"
    ),
}


async def test_constants_with_other_values_are_told_where_these_follow_from_the_order(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for path, text in NUMBERED.items():
        (root / path).write_text(text)
    told = {
        "kinds.go": "B, C",
        "kinds.h": "kind.B, kind.C",
        **dict.fromkeys(("kinds.ts", "kinds.rs"), "Kind.B, Kind.C"),
    }
    with anyio.fail_after(240):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 0}) as asked:
            for path, names in told.items():  # of Python below, by symbol
                new = "\tNew\n\tB" if path == "kinds.go" else " New, B"
                change = {"relative_path": path, "needle": new[-2:], "mode": "literal"}
                made = await asked.result("replace_content", **change, repl=new)
                assert f"In {path} the values of {names} are not what they were" in made["content"][1]["text"]
                end = ("C\n", "C\n\tD\n") if path == "kinds.go" else ("C }", "C, D }")
                made = await asked.result("replace_content", **{**change, "needle": end[0]}, repl=end[1])
                assert "not what they were" not in str(made["content"]), made
            deleted = await asked.result("safe_delete_symbol", name_path="Kind/B", relative_path="kinds.py", force=True)
            assert "In kinds.py the values of Kind.C are not what they were" in str(deleted["content"]), deleted
            member = {"name_path": "Kind/A", "relative_path": "kinds.py", "body": "    Zero = enum.auto()\n"}
            made = await asked.result("insert_before_symbol", **member)
            assert "In kinds.py the values of Kind.A, Kind.C are not what they were" in str(made["content"]), made


async def test_errors_are_told_where_a_changed_type_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.editing.edit_effects.SYMBOLS_S", 60.0)
    root = tmp_path / "project"
    root.mkdir()
    for name in ("tsconfig.json", "package.json"):
        (root / name).write_text(TYPESCRIPT[name])
    (root / "a.ts").write_text(
        "export interface Options {\n  depth: number;\n}\nexport function run(options: Options): number {\n"
        "  return options.depth;\n}\n"
    )
    (root / "b.ts").write_text('import { run } from "./a.js";\n\nexport const x = run({ depth: 1 });\n')
    with anyio.fail_after(240):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as asked:
            for path in ("a.ts", "b.ts"):
                await asked.result("get_symbols_overview", relative_path=path)
            change = {"needle": "depth: number;", "repl": "depth: number;\n  width: number;", "mode": "literal"}
            made = await asked.result("replace_content", relative_path="a.ts", **change)
    errors = json.loads(made["content"][0]["text"])["may_have_broken"]["project"]["errors_where_used"]
    assert list(errors) == ["b.ts"]
