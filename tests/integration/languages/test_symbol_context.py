"""A symbol at a glance, for every kind of symbol in every core language: a type or a variable has no callees."""

from pathlib import Path

import pytest

from tests.support.languages import asker

pytestmark = pytest.mark.anyio

CASES = {
    "go": (
        "a.go",
        (
            "package a\n\ntype Shape interface{ Area() int }\n\ntype Sq struct{ Side int }\n\n"
            "func (s Sq) Area() int { return s.Side }\n\nvar Unit = Sq{Side: 1}\n\nconst Max = 3\n\n"
            "func Use() int { return Unit.Area() + Max }\n"
        ),
        ("Shape", "Sq", "Sq/Side", "Unit", "Max"),
        "Use",
    ),
    "python": (
        "a.py",
        (
            "class Sq:\n    side = 1\n\n    def area(self) -> int:\n        return 1\n\n\n"
            "UNIT = Sq()\n\n\ndef Use() -> int:\n    return UNIT.area()\n"
        ),
        ("Sq", "Sq/side", "UNIT"),
        "Use",
    ),
    "typescript": (
        "a.ts",
        (
            "export interface Shape { area(): number }\n"
            "export class Sq implements Shape {\n  side = 1;\n  area() { return 1; }\n}\n"
            "export const unit = new Sq();\nexport type T = Shape;\nexport enum E { A }\n"
            "export function Use() { return unit.area(); }\n"
        ),
        ("Shape", "Sq", "Sq/side", "unit", "T", "E"),
        "Use",
    ),
    "rust": (
        "src/lib.rs",
        (
            "pub trait Shape { fn area(&self) -> i32; }\npub struct Sq { pub side: i32 }\n"
            "impl Shape for Sq { fn area(&self) -> i32 { self.side } }\npub static UNIT: Sq = Sq { side: 1 };\n"
            "pub const MAX: i32 = 3;\npub enum E { A }\npub fn Use() -> i32 { UNIT.area() + MAX }\n"
        ),
        ("Shape", "Sq", "Sq/side", "UNIT", "MAX", "E"),
        "Use",
    ),
    "cpp": (
        "a.cpp",
        (
            "struct Sq { int area() { return 1; } int side = 1; };\nSq unit;\nconst int MAX = 3;\nenum E { A };\n"
            "int Use() { return unit.area() + MAX; }\n"
        ),
        ("Sq", "Sq/side", "unit", "MAX", "E"),
        "Use",
    ),
}


@pytest.mark.parametrize("language", CASES)
async def test_the_context_of_types_and_variables_is_told(tmp_path: Path, language: str) -> None:
    name, text, symbols, function = CASES[language]
    root = tmp_path / language
    (root / name).parent.mkdir(parents=True)
    (root / name).write_text(text)
    (root / "go.mod").write_text("module x/a\n\ngo 1.21\n")
    (root / "Cargo.toml").write_text('[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n')
    (root / "compile_flags.txt").write_text("-std=c++17\n")
    async with asker(tmp_path, root) as asked:
        for symbol in symbols:
            context = await asked.ask("get_symbol_context", name_path=symbol, relative_path=name)
            assert (context["name_path"], context["callees"]) == (symbol, []), context
            assert context["info"], context
        assert (await asked.ask("get_symbol_context", name_path=function, relative_path=name))["callees"]
        if language == "go":
            refused = await asked.result("get_call_hierarchy", name_path="Sq", relative_path=name)
            assert "Sq is not a function" in refused["content"][0]["text"]
