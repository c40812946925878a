"""Servers that answer flat (SymbolInformation): names are found, definitions are whole or not overwritten."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import EditRefused
from tests.integration.test_by_syntax import ask, write_server
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

DEPLOY = """\
#!/bin/bash
function deploy() {
  local where=$1
  echo "deploy $where"
}
deploy prod
where=here
export where=$1
"""

PAGE = """\
<html><?php
function helper1($a) {
    return $a;
}
?>
<p>helper2</p>
<?php
function helper2($b) {
    return helper1($b);
}
class Box { public $size = 1; function Box() { return $this->size; } }
?>
<p>behind</p>
"""


def span(line: int, column: int, end_line: int, end_column: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": column}, "end": {"line": end_line, "character": end_column}}


def told(uri: str, name: str, kind: int, place: dict[str, Any], container: str = "") -> dict[str, Any]:
    return {"name": name, "kind": kind, "location": {"uri": uri, "range": place}, "containerName": container}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with shell and PHP, and scripted servers that answer as bash-language-server and intelephense do."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    shell, page = root / "deploy.sh", root / "page.php"
    shell.write_text(DEPLOY)
    page.write_text(PAGE)
    uri = shell.as_uri()
    in_shell = [told(uri, "deploy", 12, span(1, 0, 4, 1)), told(uri, "where", 13, span(7, 7, 7, 15))]
    uses = [{"uri": uri, "range": span(1, 9, 1, 15)}, {"uri": uri, "range": span(5, 0, 5, 6)}]
    answers = {"textDocument/documentSymbol": in_shell, "textDocument/references": uses}
    ready = {"method": "window/logMessage", "params": {"type": 3, "message": "INFO BackgroundAnalysis: resolving glob"}}
    log = str(tmp_path / "shell.jsonl")
    write_server(tmp_path / "bin", "bash-language-server", log=log, answers=answers, say=[ready])
    uri = page.as_uri()
    in_page = [
        told(uri, "helper1", 12, span(1, 9, 3, 1)),
        told(uri, "$a", 13, span(1, 17, 1, 19), "helper1"),
        told(uri, "helper2", 12, span(7, 9, 9, 1)),
        told(uri, "Box", 5, span(10, 6, 10, 70)),
        told(uri, "$size", 7, span(10, 19, 10, 28), "Box"),
        told(uri, "Box", 6, span(10, 39, 10, 68), "Box"),
    ]
    write_server(tmp_path / "bin", "intelephense", answers={"textDocument/documentSymbol": in_page})
    return root


async def body(central: Any, root: Path, name_path: str, path: str) -> str:
    found, _ = await ask(
        central, root, "find_symbol", name_path_pattern=name_path, relative_path=path, include_body=True
    )
    (symbol,) = found
    return symbol["body"]


async def test_references_are_asked_for_where_the_name_stands(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            named = {"name_path": "deploy", "relative_path": "deploy.sh"}
            found, _ = await ask(central, root, "find_referencing_symbols", **named)
            assert list(found) == ["deploy.sh"]
            with pytest.raises(EditRefused, match="It is referenced in"):
                await ask(central, root, "safe_delete_symbol", name_path_pattern="deploy", relative_path="deploy.sh")
            asked = [json.loads(line) for line in (tmp_path / "shell.jsonl").read_text().splitlines()]
            places = [one["params"]["position"] for one in asked if one.get("method") == "textDocument/references"]
            assert places
            assert all(place == {"line": 1, "character": 9} for place in places)


async def test_a_rename_that_a_flat_server_knows_nothing_of_changes_the_name_and_lists_where_it_is_left(
    tmp_path: Path, root: Path
) -> None:
    """The scripted servers answer null to a rename, and this one knows no references either."""
    named = {"name_path": "helper2", "relative_path": "page.php", "new_name": "other"}
    (root / "caller.php").write_text("<?php\nhelper2(1);\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            answer = await central.caller.call(
                session_of(central), "rename_symbol", {"project": str(root), **named, "dry_run": True}
            )
            assert "+function other($b) {" in answer.blocks[0]
            assert "caller.php:1" in answer.blocks[1]
            renamed, notes = await ask(central, root, "rename_symbol", **named)
            assert renamed["changed_places"] == 1
            assert "The language server renamed nothing." in notes
            assert "helper2 still occurs in code that the language server cannot resolve (check each): " in notes
            assert "caller.php:1" in notes


async def test_definitions_are_whole_where_the_server_names_only_a_part(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert (await body(central, root, "helper2", "page.php")).startswith("function helper2($b) {\n")
            assert (await body(central, root, "/Box", "page.php")).startswith("class Box { public")
            assert await body(central, root, "/Box/Box", "page.php") == "function Box() { return $this->size; }"
            assert await body(central, root, "/Box/$size", "page.php") == "public $size = 1;"
            changed = {
                "name_path": "helper2",
                "relative_path": "page.php",
                "body": "function helper2() {\n    return 2;\n}",
            }
            await ask(central, root, "replace_symbol_body", **changed)
            text = (root / "page.php").read_text()
            assert "<?php\nfunction helper2() {\n    return 2;\n}\nclass Box" in text


async def test_what_may_be_a_part_of_a_definition_is_not_overwritten(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            place = {"name_path": "where", "relative_path": "deploy.sh"}
            with pytest.raises(EditRefused, match=r"the extent of the definition of where is unknown.*as text"):
                await ask(central, root, "replace_symbol_body", **place, body="where=2")
            with pytest.raises(EditRefused, match="the extent of the definition"):
                await ask(
                    central,
                    root,
                    "safe_delete_symbol",
                    name_path_pattern="where",
                    relative_path="deploy.sh",
                    force=True,
                )
            assert (root / "deploy.sh").read_text() == DEPLOY
            await ask(central, root, "insert_after_symbol", **place, body="again=$2")
            assert "export where=$1\nagain=$2\n" in (root / "deploy.sh").read_text()


FLAT = {
    "fortls": ("a.f90", "module hello\nend module hello\n", "hello", 2, (0, 0, 1, 0), False),
    "buf": ("a.proto", 'syntax = "proto3";\nmessage Hello {\n}\n', "Hello", 5, (1, 8, 1, 13), False),
    "docker-langserver": ("Dockerfile", "FROM scratch AS hello\nRUN ls\n", "FROM", 12, (0, 0, 0, 4), False),
    "vscode-html-language-server": ("a.html", "<p>\n</p>\n<b>\n</b>\n", "p", 8, (0, 0, 1, 4), True),
}
"""Program → a file, its text, and the one symbol that the real server tells of it, flat; whether its range is whole."""


@pytest.mark.parametrize("program", FLAT)
async def test_other_flat_servers_overwrite_whole_definitions_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    file, text, name, kind, place, is_whole = FLAT[program]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / file).write_text(text)
    answers = {"textDocument/documentSymbol": [told((root / file).as_uri(), name, kind, span(*place))]}
    write_server(tmp_path / "bin", program, answers=answers)
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            change = {"name_path": name, "relative_path": file, "body": "<i>\n</i>"}
            if is_whole:
                await ask(central, root, "replace_symbol_body", **change)
                assert (root / file).read_text() == text.replace("<p>\n</p>", change["body"])
            else:
                with pytest.raises(EditRefused, match="the extent of the definition"):
                    await ask(central, root, "replace_symbol_body", **change)
                assert (root / file).read_text() == text


async def test_what_has_a_name_that_stands_nowhere_is_not_taken_for_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`h1#top` is what the server calls an element; who refers to it says `#top`."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    text = '<h1 id="top">x</h1>\n<a href="#top">y</a>\n'
    (root / "a.html").write_text(text)
    heading = told((root / "a.html").as_uri(), "h1#top", 8, span(0, 0, 0, 19))
    answers = {"textDocument/documentSymbol": [heading], "textDocument/references": []}
    write_server(tmp_path / "bin", "vscode-html-language-server", answers=answers)
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            named = {"name_path_pattern": "h1#top", "relative_path": "a.html"}
            with pytest.raises(EditRefused, match="its name is not where the language server reports it"):
                await ask(central, root, "safe_delete_symbol", **named)
            assert (root / "a.html").read_text() == text
            await ask(central, root, "safe_delete_symbol", **named, force=True)
            assert (root / "a.html").read_text() == '<a href="#top">y</a>\n'


@pytest.mark.skipif(shutil.which("bash-language-server") is None, reason="bash-language-server is not in the PATH")
async def test_the_real_bash_server_knows_who_calls_a_function(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "deploy.sh").write_text(DEPLOY)
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert (await body(central, root, "deploy", "deploy.sh")).startswith("function deploy() {")
            with pytest.raises(EditRefused, match="It is referenced in"):
                await ask(central, root, "safe_delete_symbol", name_path_pattern="deploy", relative_path="deploy.sh")
            await ask(central, root, "rename_symbol", name_path="deploy", relative_path="deploy.sh", new_name="ship")
            text = (root / "deploy.sh").read_text()
            assert text.startswith("#!/bin/bash\nfunction ship() {\n")
            assert text.endswith("}\nship prod\nwhere=here\nexport where=$1\n")
