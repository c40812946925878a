"""What of a declaration others rely on: compared before and after, by the symbols that the grammars tell."""

import pytest

from serena_central.core.text import Text
from serena_central.projects.editing.declaration_changes import redeclared
from serena_central.symbols.symbol import FileSymbols, flatten
from serena_central.symbols.syntax.outline import outline


def symbols(language: str, text: str) -> FileSymbols:
    return flatten(outline(language, text.encode())[0])


def changed(language: str, text: str, old: str, new: str) -> set[str]:
    after = text.replace(old, new, 1)
    assert after != text
    return set(
        redeclared(Text(text), symbols(language, text), Text(after), symbols(language, after)).changed,
    )


TYPESCRIPT = """\
export function f(): { a: number } {
  return { a: 1 };
}
export interface I {
  p: number;
  m(): { q: string };
}
export const c = 1;
export const typed: number = 2;
export const g = (x: number): number => x + 1;
export const h = (x: number): { a: number } => {
  const local = x;
  return { a: local };
};
export type T = { q: number } | "text";
export function gen<T extends { a: number }>(x: T): T { return x; }
export class A<X extends { b: number }> extends B {
  private field = 3;
  @cached(4)
  get v(): number { return 5; }
  handler = (e: number) => { return 6; };
}
export const table = { m() { return 7; }, k: 8 };
"""

PYTHON = """\
class A:
    @property
    def prop(self) -> int:
        return 1

    val: int = 2

    @lru_cache(3)
    def get(self, k="(") -> dict[str, int]:
        with open(k):
            return {}


TIMEOUT = 4


def one(a: int,
        b: int) -> int:
    ...
"""

RUST = """\
pub struct S {
    pub a: i32,
}
pub enum E { X, Y { z: i32 } }
pub trait Tr {
    fn need(&self) -> i32;
    fn given<'a>(&'a self) -> i32 { 1 }
}
#[must_use]
pub fn f<'a, T>(x: &'a T) -> &'a T
where
    T: Clone,
{
    x
}
"""

GO = """\
package g

type S struct {
	A int
}

func f(x interface{}) (int, error) {
	return 1, nil
}

func g() struct{ a int } { return struct{ a int }{1} }
"""


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "expected"),
    [
        ("typescript", TYPESCRIPT, "f(): { a", "f(): { b", {"f"}),
        ("typescript", TYPESCRIPT, "return { a: 1 }", "return { b: 2 }", set[str]()),
        ("typescript", TYPESCRIPT, "p: number;", "p: number;\n  r: number;", {"I"}),
        ("typescript", TYPESCRIPT, "{ q: string }", "{ q: number }", {"I"}),
        ("typescript", TYPESCRIPT, "c = 1", 'c = "a"', {"c"}),
        ("typescript", TYPESCRIPT, "c = 1", "c = 2", set[str]()),
        ("typescript", TYPESCRIPT, "typed: number", "typed: string", {"typed"}),
        ("typescript", TYPESCRIPT, "typed: number = 2", "typed: number = two()", set[str]()),
        ("typescript", TYPESCRIPT, "g = (x: number)", "g = (x: string)", {"g"}),
        ("typescript", TYPESCRIPT, "x + 1", "x + x", set[str]()),
        ("typescript", TYPESCRIPT, "{ a: number } =>", "{ b: number } =>", {"h"}),
        ("typescript", TYPESCRIPT, "local = x", "local = x()", set[str]()),
        ("typescript", TYPESCRIPT, "q: number", "z: number", {"T"}),
        ("typescript", TYPESCRIPT, '"text"', '"other"', {"T"}),
        ("typescript", TYPESCRIPT, "gen<T extends { a", "gen<T extends { b", {"gen"}),
        ("typescript", TYPESCRIPT, "X extends { b", "X extends { c", {"A"}),
        ("typescript", TYPESCRIPT, "cached(4)", "cached(5)", {"v"}),
        ("typescript", TYPESCRIPT, "return 5", "return 6", set[str]()),
        ("typescript", TYPESCRIPT, "return 6", "return 7", set[str]()),
        ("typescript", TYPESCRIPT, "e: number", "e: string", {"handler"}),
        ("typescript", TYPESCRIPT, "return 7", "return 8 + 1", set[str]()),
        ("typescript", TYPESCRIPT, "export const c", "const c", {"c"}),
        ("python", PYTHON, "    @property\n", "", {"prop"}),
        ("python", PYTHON, "    def get", "    @staticmethod\n    def get", {"get"}),
        ("python", PYTHON, "lru_cache(3)", "lru_cache(5)", {"get"}),
        ("python", PYTHON, "val: int", "val: str", {"val"}),
        ("python", PYTHON, "with open(k)", "with open(k, 1)", set[str]()),
        ("python", PYTHON, "TIMEOUT = 4", "TIMEOUT = 5", set[str]()),
        ("python", PYTHON, "TIMEOUT = 4", "TIMEOUT = '4'", {"TIMEOUT"}),
        ("python", PYTHON, "b: int", "b: str", {"one"}),
        ("python", PYTHON, "    ...", "    ...  # body", set[str]()),
        ("rust", RUST, "a: i32,", "a: i32,\n    pub b: i32,", {"S"}),
        ("rust", RUST, "z: i32", "z: i64", {"E"}),
        ("rust", RUST, "fn need", "fn more(&self);\n    fn need", {"Tr"}),
        ("rust", RUST, "{ 1 }", "{ 2 }", set[str]()),
        ("rust", RUST, "T: Clone", "T: Copy", {"f"}),
        ("rust", RUST, "#[must_use]\n", "", {"f"}),
        ("rust", RUST, "    x\n", "    &x\n", set[str]()),
        ("go", GO, "A int", "A string", {"S"}),
        ("go", GO, "return 1", "return 2", set[str]()),
        ("go", GO, "interface{}", "interface{ M() }", {"f"}),
        ("go", GO, "g() struct{ a int }", "g() struct{ b int }", {"g"}),
        ("go", GO, "{1}", "{2}", set[str]()),
    ],
)
def test_a_changed_signature_is_told_and_a_changed_body_is_not(
    language: str, text: str, old: str, new: str, expected: set[str]
) -> None:
    found = changed(language, text, old, new)
    assert (found >= expected) if expected else not found
