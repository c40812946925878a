"""Whom a question about one symbol asks in a super-repo, and what an answer says of those that it did not ask."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.languages import Asker, asker
from tests.support.superrepo import Pair, of_pairs, platform

pytestmark = pytest.mark.anyio

TYPESCRIPT = {
    "modules/ui/src/total.ts": (
        "export default function makeThing(x: string): string { return x; }\n"
        "export function helper(): number { return 1; }\n"
        "function inner(): number { return 2; }\n"
        "export { inner as outer };\n"
    ),
    "modules/web/src/page.ts": (
        'import build, { helper as h, outer } from "@platform/ui";\n'
        'import * as ui from "@platform/ui";\n'
        'import other from "./other.js";\n'
        'export const a = build("x") + h() + h();\n'
        'export const b = ui.default("y");\n'
        "export const c = outer();\n"
        "export const d = other();\n"
    ),
    "modules/web/src/other.ts": "export default function h(): number { return 3; }\nexport const build = h();\n",
}
"""A default export, and names that are others where they are used; other files use the same words for other things."""

PYTHON = {
    "modules/scoring/scoring/shared.py": (
        "class Store:\n    def save(self) -> int:\n        return 1\n\n\ndef dynamic(x) -> None:\n    x.save()\n"
    ),
    "modules/scoring/scoring/deep/__init__.py": "",
    "modules/scoring/scoring/deep/more.py": "def other(y) -> None:\n    y.save()\n",
    "modules/scan/scan/keep.py": (
        "from scoring.shared import Store as Kept\n\n\ndef keep() -> int:\n    return Kept().save()\n"
    ),
}


@asynccontextmanager
async def asking(folder: Path, files: dict[str, str] | None = None) -> AsyncGenerator[Asker]:
    root = platform(folder)
    for path, text in (files or {}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    async with asker(folder, root) as asked:
        yield asked


async def warmed(asked: Asker, *modules: str) -> None:
    """Opens them, and lets their language servers start: a part of a grouped call does not wait for that."""
    root = asked.root / "modules"
    await asked.result("list_dir", relative_path=".", project=",".join(str(root / module) for module in modules))
    for module in modules:
        project = asked.central.central.projects.opened(str(root / module))
        assert project is not None
        await project.warm()


async def answered(asked: Asker, tool: str, **arguments: Any) -> tuple[Any, str]:
    """The answer, and all that was said beside it."""
    result = await asked.result(tool, **arguments)
    texts = [part["text"] for part in result["content"]]
    assert not result["isError"], texts
    says, _, answer = texts[0].rpartition("\n")
    return json.loads(answer), "\n".join([says, *texts[1:]])


@of_pairs("python", "typescript")
async def test_a_path_below_a_super_repos_root_tells_the_declaration_and_not_who_is_asked(
    pair: Pair, tmp_path: Path
) -> None:
    async with asking(tmp_path) as asked:
        await warmed(asked, pair.declaring, pair.sibling)
        path = f"modules/{pair.declaring}/{pair.file}"
        for root in (str(asked.root), "platform"):
            groups, _ = await answered(
                asked, "find_referencing_symbols", name_path=pair.name, relative_path=path, project=root
            )
            assert {module for module, uses in groups.items() if uses} == {pair.declaring, pair.sibling}


@pytest.mark.parametrize("opened", [True, False])
async def test_an_answer_of_one_module_names_those_that_were_not_asked_and_may_refer_to_the_symbol(
    tmp_path: Path, opened: bool
) -> None:
    async with asking(tmp_path) as asked:
        await warmed(asked, "assets", "scoring", *(["chariot", "scan"] if opened else []))
        for tool in ("find_referencing_symbols", "get_symbol_context"):
            _, says = await answered(asked, tool, name_path="GoTotal", project="assets")
            assert "Not searched: 'chariot', where GoTotal occurs in code that mentions the package of 'assets'" in says
            _, says = await answered(asked, tool, name_path="Twice", project="assets")
            assert "Not searched: " not in says
        _, says = await answered(asked, "find_referencing_symbols", name_path="py_total", project="scoring,assets")
        assert "'scoring': Not searched: 'scan', where py_total occurs" in says
        _, says = await answered(asked, "find_referencing_symbols", name_path="py_total", project="scoring,scan")
        assert "Not searched: " not in says


async def test_possible_references_of_the_declaring_project_are_reported_over_several(tmp_path: Path) -> None:
    async with asking(tmp_path, PYTHON) as asked:
        await warmed(asked, "scoring", "scan")
        for project in ("scoring", "scoring,scan"):
            _, says = await answered(asked, "find_referencing_symbols", name_path="Store/save", project=project)
            assert "Possible references, in addition to those above: 2 places" in says
            assert "scoring/shared.py:6 in dynamic" in says


def lines(groups: dict[str, Any], module: str, path: str) -> set[int]:
    """Of the file, the lines that hold references."""
    shown = "\n".join(one["content_around_reference"] for uses in groups[module].get(path, {}).values() for one in uses)
    return {int(found) for found in re.findall(r"^  > *(\d+):", shown, re.MULTILINE)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("makeThing", {0, 3, 4}), ("helper", {0, 3}), ("inner", {0, 5})],
)
async def test_a_default_export_and_imports_by_another_name_are_found_in_siblings(
    name: str, expected: set[int], tmp_path: Path
) -> None:
    async with asking(tmp_path, TYPESCRIPT) as asked:
        await warmed(asked, "ui", "web")
        groups, says = await answered(asked, "find_referencing_symbols", name_path=name, project="ui,web")
        assert lines(groups, "web", "src/page.ts") == expected, (groups, says)
        assert set(groups["web"]) == {"src/page.ts"}


async def test_a_python_import_by_another_name_is_found_in_siblings(tmp_path: Path) -> None:
    async with asking(tmp_path, PYTHON) as asked:
        await warmed(asked, "scoring", "scan")
        groups, says = await answered(asked, "find_referencing_symbols", name_path="Store", project="scoring,scan")
        assert lines(groups, "scan", "scan/keep.py") == {0, 4}, (groups, says)


async def test_the_list_of_one_module_of_several_goes_on_by_its_cursor(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        await warmed(asked, "ui", "web")
        question = {"name_path": "tsTotal", "project": "ui,web", "limit": 1}
        first, says = await answered(asked, "find_referencing_symbols", **question)
        assert lines(first, "web", "src/page.ts") == {0}
        assert 'cursor="web:1/2" continues' in says
        second, says = await answered(asked, "find_referencing_symbols", **question, cursor="web:1/2")
        assert list(second) == ["web"]
        assert lines(second, "web", "src/page.ts") == {3}
        for project in ("web", "assets,scan"):
            refused = await asked.result(
                "find_referencing_symbols", name_path="tsTotal", project=project, cursor="web:1/2"
            )
            assert "the same `project` as before" in refused["content"][0]["text"]
        _, says = await answered(asked, "find_file", file_mask="*.ts", project="ui,web", limit=1)
        assert 'cursor="web:1/2" continues' in says
        for project in ("ui,web", "web"):
            rest, _ = await answered(asked, "find_file", file_mask="*.ts", project=project, cursor="web:1/2")
            assert "src/page.ts" in str(rest)


async def test_used_in_takes_a_path_from_the_super_repos_root(tmp_path: Path) -> None:
    async with asking(tmp_path, PYTHON) as asked:
        await warmed(asked, "scoring", "scan")
        question = {"name_path": "py_total", "project": "scoring,scan"}
        groups, says = await answered(asked, "find_referencing_symbols", **question, used_in="modules/scan/scan")
        assert groups["scoring"] == {}
        assert lines(groups, "scan", "scan/jobs.py") == {0, 4}, says
        refused, _ = await answered(asked, "find_referencing_symbols", **question, used_in="modules/nowhere")
        assert all("does not exist" in group["error"] for group in refused.values())
        _, says = await answered(
            asked, "find_referencing_symbols", name_path="Store/save", project="scoring,scan", used_in="scoring/deep"
        )
        assert "1 place in code" in says
        assert "shared.py" not in says


async def test_a_module_whose_folder_was_moved_is_no_empty_module(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        root = asked.root / "modules/assets"
        await answered(asked, "find_file", file_mask="backend/**/*.go", project=str(root))
        root.rename(asked.root / "modules/moved")
        refused = await asked.result("find_symbol", name_path_pattern="GoTotal", project=str(root))
        assert "no longer exists. Pass project=" in refused["content"][0]["text"]


async def test_a_mask_with_a_slash_fits_paths(tmp_path: Path) -> None:
    async with asking(tmp_path) as asked:
        for mask, folder in (("backend/**/st*.go", "."), ("store/st*.go", "backend"), ("**/store/store.go", ".")):
            found, _ = await answered(asked, "find_file", file_mask=mask, relative_path=folder, project="assets")
            assert found == {"files": ["backend/store/store.go"]}
