"""What a hierarchy may lack is said with it, of each question that it was put together from."""

from pathlib import Path

import anyio
import pytest

from serena_central.lsp import documents, settling
from serena_central.projects.navigation import server_questions
from tests.integration.languages.cases import CPP
from tests.support.languages import asker, copy_of

pytestmark = pytest.mark.anyio

CALLS = {
    "a.ts": "export function first() { return 1; }\n",
    "b.ts": 'import { first } from "./a";\nexport function second() { return first(); }\n',
    "c.ts": 'import { second } from "./b";\nexport function third() { return second(); }\n',
}


async def test_files_that_hold_the_name_of_a_caller_and_were_not_loaded_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (documents, server_questions):
        monkeypatch.setattr(module, "MAX_CANDIDATES", 1)
    root = tmp_path / "calls"
    root.mkdir()
    for name, text in CALLS.items():
        (root / name).write_text(text)
    async with asker(tmp_path, root) as asked:
        with anyio.fail_after(120):
            first = await asked.result("get_call_hierarchy", name_path="first", relative_path="a.ts", depth=1)
            both = await asked.result("get_call_hierarchy", name_path="first", relative_path="a.ts", depth=2)
    said = [" ".join(part["text"] for part in result["content"]) for result in (first, both)]
    lacks = [f"{name} occurs in 2 files, of which TypeScript 7 (native) loaded 1" for name in ("first", "second")]
    assert [[one in text for one in lacks] for text in said] == [[True, False], [True, True]]


async def test_callers_and_subtypes_say_how_many_files_the_server_has_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy_of(CPP.language, tmp_path, compile_commands=CPP.compile_commands)
    async with asker(tmp_path, root) as asked:
        await asked.ask("get_symbols_overview", relative_path=CPP.file)
        project = asked.project
        function = await project.find_one(CPP.name, CPP.file)
        shape = await project.find_one("Shape")
        monkeypatch.setattr(settling, "SETTLE_S", 0.0)
        with anyio.fail_after(120):
            _, of_calls = await project.navigation.hierarchies.of(function, "incoming", 1)
            _, of_types = await project.navigation.hierarchies.of(shape, "subtypes", 1)
    assert ["possibly relevant files" in (note or "") for note in (of_calls, of_types)] == [True, True]
