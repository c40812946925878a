"""Without a language server a project answers by syntax and says so, and believes the server once it is there."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import ServerNotInstalled
from tests.support.central import running_parts, session_of
from tests.support.fakes import FAKE_SERVER

pytestmark = pytest.mark.anyio

SHOP = """\
package shop

type Shop struct{ größe int }

// Open opens.
func (s *Shop) Open(at int) bool {
\treturn at > s.größe
}
"""


def write_server(folder: Path, name: str, **script: Any) -> None:
    """A program of that name in a folder of PATH: the scripted server."""
    folder.mkdir(exist_ok=True)
    command = shlex.join([sys.executable, "-I", "-S", str(FAKE_SERVER), json.dumps(script)])
    (folder / name).write_text(f"#!/bin/sh\nexec {command}\n")
    (folder / name).chmod(0o755)


def symbol(name: str, kind: int, line: int) -> dict[str, Any]:
    span = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}
    return {"name": name, "kind": kind, "range": span, "selectionRange": span, "children": []}


async def ask(central: Application, root: Path, tool: str, **arguments: Any) -> tuple[Any, str]:
    """The answer and its notes."""
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return json.loads(answer.blocks[0].rpartition("\n")[2]), "\n".join(answer.blocks[1:])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module on a machine that has no gopls, but a folder in its PATH where one may come to be."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GOPATH", str(tmp_path / "go"))
    monkeypatch.delenv("GOBIN", raising=False)
    root = tmp_path / "project"
    root.mkdir()
    (root / "go.mod").write_text("module shop\n")
    (root / "shop.go").write_bytes(SHOP.replace("\n", "\r\n").encode())
    return root


async def test_a_server_that_answers_null_is_not_believed_that_a_file_has_no_symbols(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".serena").mkdir(parents=True)
    server = {"languages": ["python"], "command": [sys.executable, "-I", "-S", str(FAKE_SERVER)]}
    settings = {"language_servers": {"nully": server, "python": {"server": "nully"}}}
    (root / ".serena/project.yml").write_text(json.dumps(settings))
    (root / "shop.py").write_text("def opened():\n    return 1\n")
    (root / "empty.py").write_text("# nothing\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            found, note = await ask(central, root, "find_symbol", name_path_pattern="opened", relative_path="shop.py")
            assert [one["relative_path"] for one in found] == ["shop.py"]
            assert "By syntax only (tree-sitter): 1 Python file." in note
            assert "it answered null for a file that has symbols" in note
            overview, note = await ask(central, root, "get_symbols_overview", relative_path="empty.py")
            assert (overview, "By syntax" in note) == ({}, False)


async def test_reads_are_answered_by_syntax_with_the_reason_and_what_only_a_server_knows_is_an_error(
    tmp_path: Path, root: Path
) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            overview, note = await ask(central, root, "get_symbols_overview", relative_path="shop.go")
            assert overview == {"Struct": ["Shop"]}
            assert note.startswith("By syntax only (tree-sitter): 1 Go file. Reason: The language server gopls for")
            assert "To install it: " in note
            said = note
            (found,), again = await ask(central, root, "find_symbol", name_path_pattern="Shop/Open", include_body=True)
            assert found["body"] == "func (s *Shop) Open(at int) bool {\r\n\treturn at > s.größe\r\n}"
            assert found["body_location"] == {"start_line": 5, "end_line": 7, "start_column": 0}
            assert note in again.splitlines()
            (found,), note = await ask(central, root, "find_symbol", name_path_pattern="Shop", include_info=True)
            assert "info" not in found
            assert "Without info: The language server gopls for" in note
            found, again = await ask(central, root, "find_all_symbols", relative_path="shop.go")
            assert (found, again) == ({"shop.go": ["Shop", "Shop/größe", "Shop/Open"]}, said)
            with pytest.raises(ServerNotInstalled):
                await ask(central, root, "find_referencing_symbols", name_path="Shop", relative_path="shop.go")
            for dry_run in (True, False):
                named = {"name_path": "Shop", "relative_path": "shop.go", "new_name": "Store", "dry_run": dry_run}
                with pytest.raises(ServerNotInstalled):
                    await ask(central, root, "rename_symbol", **named)
            assert (root / "shop.go").read_bytes() == SHOP.replace("\n", "\r\n").encode()


async def test_a_server_that_arrives_later_replaces_what_syntax_said(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            _, note = await ask(central, root, "find_symbol", name_path_pattern="Shop")
            assert "By syntax only" in note
            write_server(tmp_path / "bin", "gopls", answers={"textDocument/documentSymbol": [symbol("Said", 5, 2)]})
            said = {"name_path_pattern": "Said", "relative_path": "shop.go"}
            while not (await ask(central, root, "find_symbol", **said))[0]:
                await anyio.sleep(0.01)
            overview, note = await ask(central, root, "get_symbols_overview", relative_path="shop.go")
            assert (overview, note) == ({"Class": ["Said"]}, "")


async def test_a_server_that_starts_slowly_or_not_at_all_holds_nobody_up(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.build.INDEXING.patience_s", 0.2)
    write_server(tmp_path / "bin", "gopls", never_initialize=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "go.mod").write_text("module other\n")
    (other / "a.go").write_text("package other\nfunc A() {}\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            found, note = await ask(central, root, "find_symbol", name_path_pattern="Shop")
            assert [one["kind"] for one in found] == ["Struct"]
            assert "its language server gopls is starting; it is asked in the background" in note
            write_server(tmp_path / "bin", "gopls", exit_at_start=3)
            monkeypatch.setattr("serena_central.projects.build.INDEXING.patience_s", 50)
            found, note = await ask(central, other, "find_symbol", name_path_pattern="A")
            assert [one["kind"] for one in found] == ["Function"]
            assert "exited with code 3" in note


def nested(functions: int) -> str:
    return "".join(f"{' ' * level}def f{level}():\n" for level in range(functions)) + " " * functions + "pass\n"


async def test_a_file_that_nests_deeper_than_is_looked_at_says_so_also_after_a_restart(tmp_path: Path) -> None:
    root = tmp_path / "deep"
    (root / ".git").mkdir(parents=True)
    (root / "deep.py").write_text(nested(1500))
    (root / "plain.py").write_text("def total(): ...\n")
    for _ in range(2):
        async with running_parts(tmp_path) as central:
            for tool, arguments in (
                ("get_symbols_overview", {"relative_path": "deep.py"}),
                ("find_symbol", {"name_path_pattern": "f1499"}),
                ("find_symbol", {"name_path_pattern": "f1499", "relative_path": "deep.py"}),
                ("find_all_symbols", {"relative_path": ""}),
            ):
                _, notes = await ask(central, root, tool, **arguments)
                assert (
                    "1 file indexed only in part: more than 50,000 symbols, or nested deeper than 256 levels" in notes
                ), (
                    tool,
                    notes,
                )
            found, notes = await ask(central, root, "find_symbol", name_path_pattern="total", relative_path="plain.py")
            assert (len(found), notes) == (1, "")


async def test_four_hundred_nested_functions_are_all_there(tmp_path: Path) -> None:
    root = tmp_path / "deep"
    (root / ".git").mkdir(parents=True)
    (root / "deep.py").write_text(nested(400))
    async with running_parts(tmp_path) as central:
        found, notes = await ask(central, root, "find_symbol", name_path_pattern="f399")
    assert (len(found), notes) == (1, "")


async def test_symbols_of_generated_data_are_kept_up_to_a_bound_whoever_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line data as code: a server reads `data.py`, and the syntax what no server is there for."""
    for module in ("lsp.client", "symbols.symbol", "symbols.indexing.incompleteness"):
        monkeypatch.setattr(f"serena_central.{module}.MOST_SYMBOLS", 100)
    root = tmp_path / "data"
    (root / ".git").mkdir(parents=True)
    (root / "data.py").write_text("".join(f"name_{number} = {number}\n" for number in range(300)))
    (root / "plain.py").write_text("def total(): ...\n")
    for _ in range(2):  # also as the cache says
        async with running_parts(tmp_path) as central:
            found, notes = await ask(central, root, "find_symbol", name_path_pattern="name_299")
            assert found == []
            assert "1 file indexed only in part: more than 100 symbols" in notes
            assert "Use search_for_pattern in 'data.py'" in notes
            found, notes = await ask(central, root, "find_symbol", name_path_pattern="name_50")
            assert len(found) == 1
            assert "indexed only in part" in notes
            found, notes = await ask(central, root, "find_symbol", name_path_pattern="total", relative_path="plain.py")
            assert (len(found), notes) == (1, "")
