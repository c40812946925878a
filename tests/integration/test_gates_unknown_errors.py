"""Checks in front of a commit, and errors noted before edits, where a language server does not tell all."""

import json
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from serena_central.analysis.error_changes import ErrorBaseline
from serena_central.app import Application
from serena_central.core.errors import HookBlocked
from tests.support.central import running_parts, session_of
from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.fakes import FAKE_SERVER
from tests.support.scripted import behave, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

DIAGNOSTIC = "textDocument/diagnostic"

PULLS = DEFAULT_CAPABILITIES | {"diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}}

SHELL = {"execute_shell": True, "included_optional_tools": ["execute_shell_command", "restart_language_server"]}

TROUBLE = {
    "kind": "log",
    "pattern": "load",
    "trouble": "^cannot load",
    "cured": "^loaded",
    "grace_s": 30,
    "cap_s": 30,
}


def said(line: str) -> dict[str, Any]:
    return {"method": "window/logMessage", "params": {"type": 3, "message": line}}


def full(*messages: str) -> dict[str, Any]:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
    return {
        "kind": "full",
        "items": [{"range": place, "severity": 1, "code": "E1", "message": one} for one in messages],
    }


def with_gate(root: Path, check: str) -> None:
    """Makes it a repository whose commits this check stands before."""
    group = {"matcher": "Bash(git commit:*)", "hooks": [{"type": "check", "check": check}]}
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    for words in ("init -q", "config user.email a@example.org", "config user.name A", "add ."):
        subprocess.run(["git", *words.split()], cwd=root, check=True)


async def call(central: Application, root: Path, tool: str, **arguments: Any) -> str:
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return "\n".join(answer.blocks)


async def write(central: Application, root: Path, path: str, text: str) -> str:
    return await call(central, root, "create_text_file", relative_path=path, content=text)


async def commit(central: Application, root: Path) -> str:
    return await call(central, root, "execute_shell_command", command="git commit -qm x --allow-empty -a")


def last_of_log(root: Path) -> dict[str, Any]:
    return json.loads((root / ".claude/logs/validation.log").read_text().splitlines()[-1])


@pytest.mark.parametrize("check", ["no-new-errors", "no-broken-references"])
async def test_a_commit_is_stopped_where_the_server_could_not_load_the_project(tmp_path: Path, check: str) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(
        tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()}, say=[said("cannot load go.mod")]
    )
    with_gate(root, check)
    async with running_parts(tmp_path, {**SHELL, "language_servers": {"ty": {"readiness": TROUBLE}}}) as central:
        await write(central, root, "cart.py", "class Cart: ...\n")
        with pytest.raises(HookBlocked, match=r"cart\.py.*could not load everything.* a person") as blocked:
            await commit(central, root)
        assert "settings.json" in str(blocked.value)


async def test_errors_of_a_server_that_was_not_ready_before_an_edit_are_not_taken_for_known(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(
        tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()}, say=[said("cannot load go.mod")]
    )
    async with running_parts(tmp_path, {**SHELL, "language_servers": {"ty": {"readiness": TROUBLE}}}) as central:
        project = await central.projects.open(root)
        baseline = ErrorBaseline()
        await baseline.learn(project, ["cart.py"], 20)
        assert baseline.known == {}
        (root / "cart.py").write_text("class Cart: ...\n")
        behave(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full("old")}, say=[said("loaded")])
        await call(central, root, "restart_language_server", language="python")
        await baseline.learn(project, ["cart.py"], 20)  # before a second edit, whose errors may be the first one's
        assert baseline.known == {}
        found = await baseline.changes(project, ["cart.py"])
        assert ([one.message for one in found.undated], found.new_errors, found.notes) == (["old"], [], [])


async def test_a_transaction_is_told_that_errors_are_not_known(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()}, say=[said("cannot load it")])
    async with running_parts(tmp_path, {**SHELL, "language_servers": {"ty": {"readiness": TROUBLE}}}) as central:
        found = await ErrorBaseline().changes(await central.projects.open(root), ["cart.py"])
        assert "could not load everything: cannot load it" in found.notes[0]


@pytest.mark.parametrize("method", [DIAGNOSTIC, "initialized"])
async def test_what_a_server_says_while_it_is_asked_counts_for_its_answer(tmp_path: Path, method: str) -> None:
    scripted_ty(tmp_path)
    says = {method: [said("cannot load it")]}
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()}, say_on=says)
    readiness = {**TROUBLE, "kind": "none"}
    async with running_parts(tmp_path, {**SHELL, "language_servers": {"ty": {"readiness": readiness}}}) as central:
        found = await ErrorBaseline().changes(await central.projects.open(root), ["cart.py"])
        assert "could not load everything: cannot load it" in found.notes[0]


def own_server(folder: Path) -> dict[str, Any]:
    """Settings by which a server that no catalogue knows, scripted as that of `shop`, reads Python."""
    scripted_ty(folder)
    script = folder / "scripts/shop"
    program = folder / "own-server"
    program.write_text(
        f"#!/bin/sh\nread -r script < {shlex.quote(str(script))}\n"
        f'exec {shlex.join([sys.executable, "-I", "-S", str(FAKE_SERVER)])} "$script"\n'
    )
    program.chmod(0o755)
    return {**SHELL, "language_servers": {"own-server": {"languages": ["python"], "command": str(program)}}}


async def test_every_new_error_of_a_server_whose_codes_are_not_known_may_be_a_broken_reference(tmp_path: Path) -> None:
    settings = own_server(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full("Carton cannot be resolved")})
    with_gate(root, "no-broken-references")
    async with running_parts(tmp_path, settings) as central:
        await write(central, root, "new.py", "import cart\n\nprint(cart.Carton)\n")
        with pytest.raises(HookBlocked, match=r"new\.py:0: .*Carton cannot be resolved"):
            await commit(central, root)


async def test_a_pass_says_that_a_servers_codes_are_not_known(tmp_path: Path) -> None:
    settings = own_server(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()})
    with_gate(root, "no-broken-references")
    async with running_parts(tmp_path, settings) as central:
        await write(central, root, "new.py", "import cart\n\nprint(cart.Carton)\n")
        assert "own-server do not tell unresolved names from other errors" in await commit(central, root)
    assert "own-server do not tell unresolved names" in last_of_log(root)["text"]
    assert last_of_log(root)["outcome"] == "passed"


async def test_a_commit_is_stopped_where_the_history_of_edits_cannot_be_read(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, answers={DIAGNOSTIC: full()})
    with_gate(root, "no-new-errors")
    async with running_parts(tmp_path, SHELL) as central:
        await commit(central, root)
        with closing(sqlite3.connect(tmp_path / "home/serena-central.db")) as database:
            database.execute("ALTER TABLE edit RENAME TO lost")
            with pytest.raises(HookBlocked, match="could not be made"):
                await commit(central, root)
            database.execute("ALTER TABLE lost RENAME TO edit")


async def test_an_edits_answer_says_that_errors_where_its_names_are_used_may_be_missing(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(
        tmp_path,
        capabilities=PULLS | {"documentSymbolProvider": False},
        answers={DIAGNOSTIC: full()},
        say=[said("cannot load it")],
    )
    (root / "shop.py").write_text("import cart\n\nprint(cart.Cart)\n")
    async with running_parts(tmp_path, {**SHELL, "language_servers": {"ty": {"readiness": TROUBLE}}}) as central:
        await call(central, root, "get_symbols_overview", relative_path="cart.py")
        answer = await write(central, root, "cart.py", "class Carton: ...\n")
        assert 'unresolved_references":{"shop.py":["2: Cart"]' in answer
        assert "Errors caused by this edit in shop.py" in answer
        assert "could not load everything: cannot load it" in answer
