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
    monkeypatch.setattr("serena_central.projects.aftermath.SYMBOLS_S", 60.0)
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
    assert "may have broken" not in "\n".join(notes)
