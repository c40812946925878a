"""Definitions are deleted with the statement or list item that they are, and replaced with what leads them, in real
languages; what can't be is refused, and the file stays as it was."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio


class Case(NamedTuple):
    """What stands in a file, what of it is changed, and what it becomes; None: the edit is refused with `said`."""

    file: str
    before: str
    name: str
    after: str | None
    said: str = ""


GO = "package g\n\n"
DELETIONS = [
    Case("a.go", GO + "// doc.\ntype dead struct {\n\tA int\n}\n\nfunc Use() {}\n", "dead", GO + "func Use() {}\n"),
    Case("a.go", GO + "var dead = 1 // why\n\nfunc Use() {}\n", "dead", GO + "func Use() {}\n"),
    Case("a.go", GO + "const dead = 1\n", "dead", "package g\n"),
    Case("a.go", GO + "var p, q = 1, 2\n", "p", None, "shares one definition with q"),
    Case("a.go", GO + "const (\n\ta = iota\n\tb\n)\n", "a", None, "values from their positions"),
    Case("a.go", GO + "const (\n\ta = iota\n\tb\n)\n", "b", GO + "const (\n\ta = iota\n)\n"),
    Case("a.go", GO + "func one() {}; func Two() {}\n", "one", GO + "func Two() {}\n"),
    Case("a.ts", "const dead = 1;\nexport const b = 2;\n", "dead", "export const b = 2;\n"),
    Case("a.ts", "const dead = () => {\n  return 1;\n};\nexport {};\n", "dead", "export {};\n"),
    Case("a.ts", "const a = 1, b = 2;\nexport {};\n", "a", "const b = 2;\nexport {};\n"),
    Case("a.ts", "const a = 1, b = 2;\nexport {};\n", "b", "const a = 1;\nexport {};\n"),
    Case("a.ts", "export const c = {\n  gone: 1,\n  kept: 2,\n};\n", "c/gone", "export const c = {\n  kept: 2,\n};\n"),
    Case("a.ts", "export enum E {\n  A = 1,\n  B = 2\n}\n", "E/B", "export enum E {\n  A = 1\n}\n"),
    Case("a.ts", "export class S {\n  constructor(private a: number) {}\n}\n", "S/a", None, "callers pass"),
    Case("a.rs", "enum E {\n    A,\n    Dead(i32),\n}\n", "E/Dead", "enum E {\n    A,\n}\n"),
    Case("a.rs", "enum N {\n    A = 1,\n    B,\n}\n", "N/A", None, "values from their positions"),
    Case("a.rs", "enum N {\n    A = 1,\n    B = 2,\n}\n", "N/A", "enum N {\n    B = 2,\n}\n"),
    Case("a.rs", "#[repr(u8)]\n// W.\nenum N {\n    A,\n    B,\n}\n", "N/A", None, "values from their positions"),
    Case(
        "a.rs",
        "#[repr(align(8))]\nenum N {\n    A,\n    B,\n}\n",
        "N/A",
        "#[repr(align(8))]\nenum N {\n    B,\n}\n",
    ),
    Case("a.rs", "struct P {\n    a: i32,\n    /// D.\n    b: i32, // why\n}\n", "P/b", "struct P {\n    a: i32,\n}\n"),
    Case("a.c", "enum color { RED = 1, GREEN = 2 };\n", "color/RED", "enum color { GREEN = 2 };\n"),
    Case("a.c", "enum color { RED, GREEN };\n", "color/RED", None, "values from their positions"),
    Case("a.c", "static int dead[] = {\n    1,\n};\nint c;\n", "dead", "int c;\n"),
    Case("a.c", "typedef struct point { int x; } point_t;\n", "point", None, "can't be parsed"),
    Case("a.c", "struct point { int x; } origin;\n", "point", None, "would not be the same as before"),
    Case("a.c", "int a, b = 2;\n", "b", None, "shares one definition with a"),
    Case("a.c", "struct p {\n    int x, y;\n};\n", "p/y", None, ""),
    Case(
        "a.cpp",
        "template <typename T>\nconcept Sized = requires(T t) { t.size(); };\nint a;\n",
        "Sized",
        "int a;\n",
    ),
    Case(
        "a.cpp",
        "class Box {\n  friend class Peer;\n  friend void peek(const Box &box) {}\n  int a = 1;\n};\n",
        "Box/peek",
        "class Box {\n  friend class Peer;\n  int a = 1;\n};\n",
    ),
    Case("a.cpp", 'extern "C" int api(int x);\nint a;\n', "api", None, "would not be the same as before"),
    Case("a.cpp", "struct P {\n  int a, b;\n};\n", "P/a", None, "is unknown"),
    Case(
        "a.ts",
        "export interface T {\n  [key: string]: number;\n  a: number;\n}\n",
        "T/[]",
        "export interface T {\n  a: number;\n}\n",
    ),
    Case(
        "a.ts",
        "export interface T {\n  (row: number): number;\n  new (rows: number): T;\n}\n",
        "T/()",
        "export interface T {\n  new (rows: number): T;\n}\n",
    ),
    Case(
        "a.ts",
        "export interface T {\n  get(key: string): T;\n  get(key: number): T;\n}\n",
        "T/get[1]",
        "export interface T {\n  get(key: string): T;\n}\n",
    ),
    Case("a.py", "type A[T = int] = T\none = 1; two = 2\n", "one", "type A[T = int] = T\ntwo = 2\n"),
    Case("a.py", "one = 1; two = 2\n", "one", "two = 2\n"),
    Case("a.py", "one = 1; two = 2\n", "two", "one = 1\n"),
    Case("a.py", "class G: z = 1\n", "G/z", "class G: pass\n"),
    Case("a.py", "try:\n    pass\nexcept OSError: x = None\n", "x", "try:\n    pass\nexcept OSError: pass\n"),
    Case("a.py", "one = 1\ntwo = 2  # why\n", "two", "one = 1\n"),
    Case("a.py", "A, B = 1, 2\n", "A", None, "shares one definition with B"),
    Case("a.py", "x = y = 3\n", "x", None, "its value is an assignment to y"),
    Case("a.py", "with open('a') as fh:\n    fh.read()\n", "fh", None, ""),
    Case("a.py", "for i in range(3):\n    print(i)\n", "i", None, ""),
]

REPLACEMENTS = [
    (
        Case("a.go", GO + "type Kept struct{ X int }\n", "Kept", GO + "type Kept struct{ Y int }\n"),
        "type Kept struct{ Y int }",
    ),
    (Case("a.go", GO + "const Kept = 1\n", "Kept", GO + "const Kept = 2\n"), "const Kept = 2"),
    (Case("a.go", GO + "const Kept = 1\n", "Kept", GO + "const Kept = 2\n"), "Kept = 2"),
    (Case("a.ts", "export const used = 1;\n", "used", "export const used = 3;\n"), "export const used = 3;"),
    (Case("a.ts", "const used = 1;\n", "used", "export const used = 3;\n"), "export const used = 3;"),
    (
        Case("a.ts", "const f = () => {\n  return 1;\n};\n", "f", "const f = () => {\n  return 2;\n};\n"),
        "const f = () => {\n  return 2;\n}",
    ),
    (
        Case(
            "a.ts",
            "export interface T {\n  [key: string]: number;\n}\n",
            "T/[]",
            "export interface T {\n  [key: number]: number;\n}\n",
        ),
        "[key: number]: number;",
    ),
    (Case("a.ts", "const used = 1;\n", "used", None, "can't be parsed"), "let used = 3"),
    (
        Case("a.py", "class A: ...\n", "A", "class A[T = int, *U = *tuple[int]]:\n    x: T\n"),
        "class A[T = int, *U = *tuple[int]]:\n    x: T",
    ),
    (Case("a.py", "class A: ...\n", "A", None, "can't be parsed"), "class A[T = int:\n    x: T"),
    (Case("a.py", "class A: ...\n", "A", None, "can't be parsed"), "class A[T = ((int]:\n    x: T"),
    (Case("a.py", "A, B = 1, 2\n", "A", None, "also defines B"), "A = 1"),
    (Case("a.py", "A, B = 1, 2\n", "A", "A, B = 3, 4\n"), "A, B = 3, 4"),
    (Case("a.c", "int a = 1;\n", "a", "int a = 3;\n"), "int a = 3;"),
    (
        Case(
            "a.cpp",
            "template <typename T>\nclass Box {\n    T t;\n};\n",
            "Box",
            "template <class T>\nclass Box {\n    T u;\n};\n",
        ),
        "template <class T>\nclass Box {\n    T u;\n};",
    ),
    (
        Case(
            "a.ts", "export declare function ext(a: number): void;\n", "ext", "export declare function ext(): void;\n"
        ),
        "export declare function ext(): void;",
    ),
]

INSERTIONS = [
    ("a.cpp", "template <typename T>\nclass Box {\n    T t;\n};\n", "Box", "int z;"),
    ("a.cpp", "template <typename T>\nT fn(T t) { return t; }\n", "fn", "int z;"),
    ("a.cpp", "[[nodiscard]] int attr() { return 1; }\n", "attr", "int z;"),
    ("a.cpp", "[[deprecated]] void dep();\n", "dep", "int z;"),
    ("a.ts", "declare function ext(a: number): void;\n", "ext", "type Z = 1;"),
    ("a.ts", "declare class DC {\n  m(): void;\n}\n", "DC", "type Z = 1;"),
    ("a.ts", "declare enum DE { A }\n", "DE", "type Z = 1;"),
    ("a.ts", "declare namespace NS {\n  const q: number;\n}\n", "NS", "type Z = 1;"),
    ("a.d.ts", 'declare module "foo" {\n  const q: number;\n}\n', '"foo"', "type Z = 1;"),
]

DOCUMENTED = [
    ("a.go", GO, "// Kept does.\n// More.\nfunc Kept() {}\n", "Kept", "func New() {}"),
    ("a.go", GO + "type T struct{}\n\n", "// M does.\nfunc (t T) M() {}\n", "(T).M", "func New() {}"),
    ("a.go", "// Package g does.\npackage g\n\n// Apart.\n\n", "func Kept() {}\n", "Kept", "func New() {}"),
    ("a.ts", "/* Licence. */\n\n", "/**\n * Does.\n */\nexport function kept() {}\n", "kept", "function n() {}"),
    ("a.ts", "class C {\n", "  /** Does. */\n  m() {}\n}\n", "C/m", "n() {}"),
    ("a.rs", "//! Crate.\n\n", "/// Does.\n#[inline]\npub fn kept() {}\n", "kept", "fn new() {}"),
    ("a.rs", "//! Crate.\n\n", "#[inline]\n/// Does.\npub fn kept() {}\n", "kept", "fn new() {}"),
    ("a.rs", "struct S;\nimpl S {\n", "    /// Does.\n    fn m(&self) {}\n}\n", "impl S/m", "fn n() {}"),
    ("a.cpp", "// Licence.\n\n", "/// Does.\n[[nodiscard]] int kept() { return 1; }\n", "kept", "int n();"),
    ("a.py", "# Licence.\n\n", 'def kept():\n    """Does."""\n', "kept", "def new(): ..."),
]
"""File, what stands above, the documented definition, its name, and what is inserted before it."""

PROJECT = {
    "go.mod": "module example.com/g\n\ngo 1.21\n",
    "Cargo.toml": '[package]\nname = "q"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "a.rs"\n',
    "tsconfig.json": '{"compilerOptions": {"noEmit": true}, "include": ["."]}',
    "compile_flags.txt": "-std=c++20\n",
}
FILES = ("a.go", "a.ts", "a.rs", "a.c", "a.cpp", "a.py", "a.d.ts")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Asker]:
    folder = tmp_path_factory.mktemp("statements")
    root = folder / "shop"
    (root / ".git").mkdir(parents=True)
    for name, text in PROJECT.items():
        (root / name).write_text(text)
    async with asker(folder, root, {"edit_conflicts": "warn"}) as ask:
        yield ask


async def check(ask: Asker, case: Case, tool: str, **arguments: Any) -> None:
    for name in FILES:
        (ask.root / name).unlink(missing_ok=True)
    file: Path = ask.root / case.file
    file.write_text(case.before)
    result = await ask.result(tool, relative_path=case.file, name_path=case.name, **arguments)
    said = result["content"][0]["text"]
    assert file.read_text() == (case.before if case.after is None else case.after), said
    if case.after is None:
        assert result["isError"], said
        assert case.said in said


@pytest.mark.parametrize("case", DELETIONS, ids=lambda case: f"{case.file}-{case.name}")
async def test_a_definition_is_deleted_with_its_whole_statement_or_not_at_all(project: Asker, case: Case) -> None:
    force = case.said != "values from their positions"
    await check(project, case, "safe_delete_symbol", force=force)


@pytest.mark.parametrize(("case", "body"), REPLACEMENTS, ids=lambda value: getattr(value, "name", "body"))
async def test_a_body_with_its_keywords_replaces_them(project: Asker, case: Case, body: str) -> None:
    await check(project, case, "replace_symbol_body", body=body)


@pytest.mark.parametrize(("file", "text", "name", "body"), INSERTIONS, ids=[row[2] for row in INSERTIONS])
async def test_code_is_inserted_around_all_kinds_of_declarations(
    project: Asker, file: str, text: str, name: str, body: str
) -> None:
    for tool in ("insert_before_symbol", "insert_after_symbol"):
        changed = f"{body}\n\n{text}", f"{body}\n{text}", f"{text}\n{body}\n", f"{text}{body}\n"
        for old in FILES:
            (project.root / old).unlink(missing_ok=True)
        (project.root / file).write_text(text)
        result = await project.result(tool, relative_path=file, name_path=name, body=body)
        assert (project.root / file).read_text() in changed, result["content"][0]["text"]


@pytest.mark.parametrize(("file", "above", "documented", "name", "body"), DOCUMENTED)
async def test_code_is_inserted_before_the_doc_comment_of_a_definition(
    project: Asker, file: str, above: str, documented: str, name: str, body: str
) -> None:
    indentation = documented[: len(documented) - len(documented.lstrip())]
    after = f"{above}{indentation}{body}\n\n{documented}"
    await check(project, Case(file, above + documented, name, after), "insert_before_symbol", body=body)
