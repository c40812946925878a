"""The five core languages for real: exact answers about small projects, through a server that runs.

One server per language, shared by its tests; the very first question is asked right after the cold start. The last
test changes files; what it does it takes back.
"""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.lsp.catalogue import catalogue
from tests.integration.languages.cases import CASES, CPP, Case
from tests.support.languages import AS_SHIPPED, Asker, asker, copy_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.language)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
async def asked(case: Case, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Asker]:
    folder = tmp_path_factory.mktemp(case.language)
    root = copy_of(case.language, folder, compile_commands=case.compile_commands)
    async with asker(folder, root, AS_SHIPPED) as asked:
        asked.cold = await asked.ask("find_referencing_symbols", name_path=case.name, relative_path=case.file)
        yield asked


def span(text: dict[str, Any]) -> str:
    start, end = text["start"], text["end"]
    return f"{start['line']}:{start['column']}-{end['line']}:{end['column']}"


def tree(nodes: list[dict[str, Any]], direction: str) -> dict[str, Any]:
    """`path:line name` → what lies below."""
    return {
        f"outside {node['name']}"
        if "outside_project" in node
        else f"{node['relative_path']}:{node['line']} {node['name']}": tree(node.get(direction, []), direction)
        for node in nodes
    }


async def test_references_right_after_a_cold_start_are_the_settled_ones(case: Case, asked: Asker) -> None:
    assert await asked.uses(case.name, case.file) == sorted_uses(case.references)
    assert await asked.ask("find_referencing_symbols", name_path=case.name, relative_path=case.file) == asked.cold
    holders = sorted(
        (path, "-" if entry["name_path"] == "<file>" else entry["name_path"])
        for path, kinds in asked.cold.items()
        for entries in kinds.values()
        for entry in entries
    )
    assert holders == sorted((use.split(":")[0], use.split(" ")[1]) for use in case.references)


def sorted_uses(uses: tuple[str, ...] | list[str]) -> list[str]:
    def place(use: str) -> tuple[str, int, int]:
        path, line, column = use.split(" ")[0].split(":")
        return path, int(line), int(column)

    return sorted(uses, key=place)


async def test_a_definition_is_found_with_its_exact_extent_and_body(case: Case, asked: Asker) -> None:
    (found,) = await asked.ask("find_symbol", name_path_pattern=case.name, relative_path=case.file, include_body=True)
    lines = (asked.root / case.file).read_text().splitlines()
    path, start, start_column, end, end_column = case.body.replace("-", ":").split(":")
    assert found["relative_path"] == path
    assert found["body_location"] == {
        "start_line": int(start),
        "end_line": int(end),
        "start_column": int(start_column),
    }
    body = lines[int(start) : int(end) + 1]
    body[-1] = body[-1][: int(end_column)]
    assert found["body"] == "\n".join(body)[int(start_column) :]


async def test_a_use_leads_to_its_definition(case: Case, asked: Asker) -> None:
    regex, place = case.declaration
    found = await asked.ask("find_declaration", relative_path=case.main, regex=regex)
    where = found["body_location"]
    assert f"{found['relative_path']}:{where['start_line']}:{where['start_column']} {found['name_path']}" == place


async def test_implementations_are_found(case: Case, asked: Asker) -> None:
    for name_path, expected in case.implementations.items():
        found = await asked.ask("find_implementations", name_path=name_path)
        assert sorted(f"{one['relative_path']}: {one['name_path']}" for one in found) == list(expected)


async def test_diagnostics_stand_where_the_faults_are(case: Case, asked: Asker) -> None:
    answer = await asked.ask("get_diagnostics_for_file", relative_path=case.broken, min_severity=1)
    found = [fault for faults in answer[case.broken]["Error"].values() for fault in faults]
    assert sorted(span(fault["range"]) for fault in found) == sorted(case.diagnostics)
    assert all(fault["message"] for fault in found)


async def test_calls_are_followed_both_ways(case: Case, asked: Asker) -> None:
    up = await asked.ask("get_call_hierarchy", name_path=case.name, relative_path=case.file)
    assert tree(up["incoming"], "incoming") == case.incoming
    down = await asked.ask("get_call_hierarchy", name_path="report", relative_path=case.main, direction="outgoing")
    assert tree(down["outgoing"], "outgoing") == case.outgoing


async def test_types_are_followed_both_ways_where_the_server_can(case: Case, asked: Asker) -> None:
    if case.subtypes is None:
        spec = catalogue().default_server(case.language)
        assert spec is not None
        refused = await asked.result("get_type_hierarchy", name_path="Shape")
        assert refused["content"][0]["text"] == (
            f"The language server {spec.name} does not offer type hierarchies. Use find_implementations."
        )
        return
    down = await asked.ask("get_type_hierarchy", name_path="Shape")
    assert tree(down["subtypes"], "subtypes") == case.subtypes
    up = await asked.ask("get_type_hierarchy", name_path="Tile", direction="supertypes")
    assert tree(up["supertypes"], "supertypes") == case.supertypes


async def test_the_answer_after_every_change_on_disk_knows_it(case: Case, asked: Asker) -> None:
    more, main = asked.root / case.more, asked.root / case.main
    more.parent.mkdir(exist_ok=True)

    def declare(stem: str) -> None:
        path, line = case.declared
        if path:
            original = (asked.root / path).read_text()
            undo.setdefault(path, original)
            (asked.root / path).write_text(undo[path] + (line.format(stem=stem) if stem else ""))

    undo: dict[str, str] = {case.main: main.read_text()}

    async def expect(path: str = "", shift: int = 0, without: str = "") -> None:
        added = [shifted(use.format(path=path), shift) for use in case.more_uses] if path else []
        kept = [use for use in case.references if not use.startswith(without or "\0")]
        assert await asked.uses(case.name, case.file) == sorted_uses([*kept, *added])
        found = await asked.ask("find_symbol", name_path_pattern="/more", include_kinds=["Function"])
        assert [one["relative_path"] for one in found] == ([path] if path else [])

    declare(more.stem)
    more.write_text(case.more_text)
    await expect(case.more)
    more.write_text("\n\n" + case.more_text)
    await expect(case.more, 2)
    renamed = more.with_stem("renamed")
    declare(renamed.stem)
    more.rename(renamed)
    await expect(renamed.relative_to(asked.root).as_posix(), 2)
    main.write_text(undo[case.main].replace(*case.unused))
    last = next(use for use in reversed(case.references) if use.startswith(case.main))
    await expect(renamed.relative_to(asked.root).as_posix(), 2, without=last)
    renamed.unlink()
    declare("")
    await expect(without=last)
    main.write_text(undo[case.main])
    await expect()


def shifted(use: str, lines: int) -> str:
    path, line, rest = use.split(":", 2)
    return f"{path}:{int(line) + lines}:{rest}"


async def test_a_file_that_clangd_knows_from_its_index_alone_is_read_again_when_it_changes(tmp_path: Path) -> None:
    case = CPP
    root = copy_of(case.language, tmp_path, compile_commands=case.compile_commands)
    async with asker(tmp_path, root, AS_SHIPPED) as asked:
        await asked.ask("get_symbols_overview", relative_path=case.file)
        await asked.ask("find_implementations", name_path="Square")  # by now the index is made
        broken = root / case.broken
        broken.write_text("int wrong() {\n    return 1;\n}\n\n\n\n")
        kept = [use for use in case.references if not use.startswith(case.broken)]
        assert await asked.uses(case.name, case.file) == sorted_uses(kept)


async def test_a_rename_changes_every_place_and_can_be_taken_back(case: Case, asked: Asker) -> None:
    before = texts_in(asked.root)
    new = f"{case.name}OfAll"
    word = re.compile(rf"\b{case.name}\b")
    result = await asked.result("rename_symbol", name_path=case.name, relative_path=case.file, new_name=new)
    assert not result["isError"], result["content"]
    assert texts_in(asked.root) == {path: word.sub(new, text) for path, text in before.items()}
    assert await asked.uses(new, case.file) == sorted_uses([word.sub(new, use) for use in case.references])
    result = await asked.result("rename_symbol", name_path=new, relative_path=case.file, new_name=case.name)
    assert not result["isError"], result["content"]
    assert texts_in(asked.root) == before
    assert await asked.uses(case.name, case.file) == sorted_uses(case.references)


def texts_in(root: Path) -> dict[str, str]:
    """The project's own sources."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.suffix in {".py", ".ts", ".tsx", ".js", ".go", ".rs", ".c", ".cpp", ".hpp"}
        and not {".venv", "target", ".cache"} & set(path.parts)
    }
