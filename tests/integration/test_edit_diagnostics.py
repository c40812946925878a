"""What an edit's answer says of errors where the language server can't tell them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from tests.integration.languages.test_renamed_members import written
from tests.support.central import running_parts, session_of
from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.languages import asker
from tests.support.scripted import CART, behave, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

DIAGNOSTIC = "textDocument/diagnostic"

PULLS: dict[str, Any] = DEFAULT_CAPABILITIES | {
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}
}

TROUBLE = {"kind": "log", "pattern": "load", "trouble": "^cannot load", "grace_s": 30, "cap_s": 30}

ERROR = {
    "range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 5}},
    "severity": 1,
    "message": "old",
}


def full(*errors: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "full", "items": list(errors)}


def said(line: str) -> dict[str, Any]:
    return {"method": "window/logMessage", "params": {"type": 3, "message": line}}


async def write(central: Application, root: Path, text: str) -> str:
    asked = {"project": str(root), "relative_path": "cart.py", "content": text}
    return "\n".join((await central.caller.call(session_of(central), "create_text_file", asked)).blocks)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ({"crash_on": [DIAGNOSTIC]}, "crash: exit code -9"),
        ({"errors": {DIAGNOSTIC: [-32603] * 9}}, "refused textDocument/diagnostic: 'as scripted'"),
        ({"exit_at_start": 3}, "exited with code 3"),
    ],
)
async def test_an_answer_says_why_a_server_that_failed_told_no_errors(
    tmp_path: Path, script: dict[str, Any], why: str
) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    behave(tmp_path, "shop", **{"capabilities": PULLS, **script})
    async with running_parts(tmp_path, {"edit_diagnostics_s": 30}) as central:
        answer = await write(central, root, CART + "\n")
    assert "No diagnostics for cart.py after this edit: " in answer
    assert why in answer


async def test_that_a_server_is_missing_is_said_once_in_a_session(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    async with running_parts(tmp_path, {"edit_diagnostics_s": 30}) as central:
        session = session_of(central)
        asked = [
            {"project": str(root), "relative_path": path, "content": "def first\n  1\nend\n"}
            for path in ("a.rb", "b.rb", "c.md")
        ]
        answers = ["\n".join((await central.caller.call(session, "create_text_file", one)).blocks) for one in asked]
    assert "No diagnostics for a.rb after this edit: The language server ruby-lsp for ruby" in answers[0]
    assert all("No diagnostics" not in answer for answer in answers[1:])


async def test_an_answer_says_nothing_of_errors_that_its_server_never_tells(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    errors = {DIAGNOSTIC: [-32601] * 9}
    root = scripted_project(tmp_path, capabilities=PULLS, answers={}, errors=errors)
    async with running_parts(tmp_path) as central:
        assert "diagnostics" not in await write(central, root, CART + "\n")


async def test_what_a_server_told_before_it_had_loaded_all_is_said_and_not_taken_for_known(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()}, say=[said("cannot load it")])
    optional = {"included_optional_tools": ["restart_language_server"]}
    settings = {**optional, "language_servers": {"ty": {"readiness": TROUBLE}}}
    async with running_parts(tmp_path, settings) as central:
        answer = await write(central, root, CART + "\n")
        assert "Diagnostics for cart.py may be incomplete: " in answer
        assert "could not load everything: cannot load it" in answer
        behave(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full(ERROR)}, say=[said("load")])
        await central.caller.call(session_of(central), "restart_language_server", {"project": str(root)})
        assert "old" not in await write(central, root, CART + "\n\n")


async def test_a_rename_in_a_header_and_its_source_brings_no_errors_of_the_header_as_it_was(tmp_path: Path) -> None:
    files = {
        "compile_flags.txt": "",
        "part.h": "int run(int x);\n",
        "part.c": '#include "part.h"\nint run(int x) { return x; }\n',
        "use.c": '#include "part.h"\nint use(void) { return run(1); }\n',
    }
    root = written(tmp_path / "parts", files)
    names = ["run", "walk"] * 4
    async with asker(tmp_path, root, {"edit_diagnostics_s": 30}) as client:
        for old, new in pairwise(names):
            renamed = await client.result("rename_symbol", name_path=old, relative_path="part.c", new_name=new)
            assert json.loads(renamed["content"][0]["text"])["changed_places"] == 3
            assert "new_errors" not in renamed["content"][0]["text"]
        (root / "part.h").write_text("")
        broken = await client.result("replace_symbol_body", name_path="use", body="int use(void) { return run(2); }")
    assert "run" in json.loads(broken["content"][0]["text"])["new_errors"]["use.c"]["Error"]["use"][0]["message"]
