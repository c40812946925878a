"""Signatures of a function, accessors of a property, declarations that merge, definitions in branches: one symbol."""

from pathlib import Path

import anyio
import pytest

from tests.support.languages import asker

pytestmark = pytest.mark.anyio

SHAPES = """\
export class Box {
  get size(): number { return 1; }
  set size(value: number) {}
}
export function over(a: string): void;
export function over(a: number): void;
export function over(a: unknown): void {}
export interface Merged { a: number }
export class Merged { b = 1; }
export namespace Merged { export const c = 1; }
export function main(box: Box, merged: Merged): void {
  box.size = 2;
  over(box.size + merged.a + merged.b + Merged.c);
}
if (Merged.c) { const twice = 1; over(twice); } else { const twice = 2; over(twice); }
"""


@pytest.mark.parametrize(
    ("name", "new", "definitions"), [("Box/size", "width", 2), ("over", "fits", 3), ("Merged", "Joined", 3)]
)
async def test_it_is_found_used_and_renamed_as_one(tmp_path: Path, name: str, new: str, definitions: int) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "tsconfig.json").write_text("{}")
    (root / "shapes.ts").write_text(SHAPES)
    where = {"relative_path": "shapes.ts"}
    with anyio.fail_after(120):
        async with asker(tmp_path, root, {"edit_diagnostics_s": 0}) as asked:  # what an edit broke is others' to test
            found = await asked.ask("find_symbol", name_path_pattern=name, **where)
            assert [one["name_path"] for one in found] == [f"{name}[{place}]" for place in range(definitions)]
            used = await asked.ask("find_referencing_symbols", name_path=name, **where)
            assert {use["name_path"] for uses in used["shapes.ts"].values() for use in uses} >= {"main"}
            for tool, arguments in (("replace_symbol_body", {"body": "x"}), ("rename_symbol", {"new_name": "twice"})):
                refused = await asked.result(tool, name_path="twice" if "new_name" in arguments else name, **arguments)
                assert refused["isError"]
                assert "[1]" in refused["content"][0]["text"]
            await asked.ask("rename_symbol", name_path=name, new_name=new, **where)
    old = name.rpartition("/")[2]
    assert (root / "shapes.ts").read_text() == SHAPES.replace(old, new)


BRANCHES = """\
def choose(flag):
    if flag:
        def inner():
            return 1
    else:
        def inner():
            return inner() + 1
    return inner()
"""


async def test_definitions_in_branches_are_renamed_together_or_by_their_number(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text(BRANCHES)
    with anyio.fail_after(120):
        async with asker(tmp_path, root) as asked:
            made = await asked.result(
                "rename_symbol", name_path="choose/inner", relative_path="a.py", new_name="chosen"
            )
            assert not made["isError"], made
            assert (root / "a.py").read_text() == BRANCHES.replace("inner", "chosen")
            await asked.result("rename_symbol", name_path="choose/chosen[0]", relative_path="a.py", new_name="first")
    assert "def first()" in (root / "a.py").read_text()
    assert "def chosen()" in (root / "a.py").read_text()
