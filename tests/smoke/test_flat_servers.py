"""Servers of the catalogue that answer flat (SymbolInformation), as pip and npm install them: what is used is not
deleted, a rename changes every place or nothing, and no edit leaves half a definition behind.

`make smoke` runs it, after the installations of `test_servers`, which says which servers answer flat.
"""

import json
import os
import sysconfig
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.install import install
from tests.smoke.samples import SAMPLES
from tests.smoke.test_servers import FLAT, HOME, PIP_AND_NPM
from tests.support.languages import asker
from tests.support.mcp import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STOCK = """\
module stock
  implicit none
contains
  subroutine restock(n)
    integer, intent(in) :: n
    print *, n
  end subroutine restock
end module stock
"""

SHOP = 'syntax = "proto3";\npackage shop;\nmessage Item {}\nmessage Order {\n  Item item = 1;\n}\n'


class Case(NamedTuple):
    """A project of one language; `name` is used in it. `renamed`: the old name becomes `other` everywhere, else the
    rename is refused. `whole`: its definition is replaced as a whole, else that is refused."""

    language: str
    files: dict[str, str]
    name: str
    renamed: bool
    whole: bool


CASES = {
    "bash-language-server": Case(
        "bash",
        {"a.sh": "function restock() {\n  echo 1\n}\n", "b.sh": "source ./a.sh\nrestock\n"},
        "restock",
        renamed=True,
        whole=True,
    ),
    "buf": Case("proto", {"a.proto": SHOP}, "shop.Item", renamed=False, whole=False),
    "docker-langserver": Case(
        "dockerfile", {"Dockerfile": "FROM scratch AS base\nFROM base\n"}, "FROM[0]", renamed=False, whole=False
    ),
    "elm-language-server": Case(
        "elm",
        {
            "Main.elm": "module Main exposing (restock)\n\n\nrestock : Int -> Int\nrestock n =\n    n + 1\n",
            "Other.elm": (
                "module Other exposing (two)\n\nimport Main exposing (restock)\n\n\ntwo : Int\ntwo =\n    restock 1\n"
            ),
            "elm.json": SAMPLES["elm"].beside["elm.json"],
        },
        "restock",
        renamed=True,
        whole=True,
    ),
    "fortls": Case(
        "fortran",
        {"a.f90": STOCK, "b.f90": "program main\n  use stock\n  CALL Restock(3)\nend program main\n"},
        "stock/restock",
        renamed=True,
        whole=False,
    ),
    "vscode-html": Case(
        "html", {"a.html": '<h1 id="top">x</h1>\n<a href="#top">y</a>\n'}, "h1#top", renamed=False, whole=True
    ),
}


def test_every_flat_server_has_a_case() -> None:
    assert set(CASES) == FLAT


@pytest.mark.parametrize("name", CASES)
async def test_edits_are_whole_and_complete_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    case, places = CASES[name], Places(HOME)
    root = tmp_path / "project"
    (root / ".serena").mkdir(parents=True)
    (root / ".serena/project.yml").write_text(f"languages: [{case.language}]\n")
    for path, text in case.files.items():
        (root / path).write_text(text)
    first = next(iter(case.files))
    symbol = {"name_path": case.name, "relative_path": first}
    with anyio.fail_after(600):
        await install(catalogue().server(name), places, methods=PIP_AND_NPM, tell=print)
        more = tmp_path / "more"
        more.mkdir()
        (more / name).symlink_to(places.servers / name)
        settings = {"edit_diagnostics_s": 0, "trusted_roots": [str(root)]}
        async with asker(tmp_path, root, settings, more=more) as ask:
            await ask.project.languages.ask(first, lambda server: server.ready())
            await ask.result("get_symbols_overview", relative_path=first)
            found = await ask.result(
                "find_symbol", name_path_pattern=f"/{case.name}", relative_path=first, include_body=True
            )
            body = json.loads(found["content"][0]["text"])[0]["body"]
            deleted = await ask.result("safe_delete_symbol", **symbol)
            assert deleted["isError"], text_of(deleted)
            replaced = await ask.result("replace_symbol_body", **symbol, body=body)
            assert replaced["isError"] is not case.whole, text_of(replaced)
            assert {path: (root / path).read_text() for path in case.files} == case.files
            renamed = await ask.result("rename_symbol", **symbol, new_name="other")
    assert renamed["isError"] is not case.renamed, text_of(renamed)
    old = case.name.rpartition("/")[2]
    expected = {
        path: text.replace(old, "other").replace(old.title(), "other") if case.renamed else text
        for path, text in case.files.items()
    }
    assert {path: (root / path).read_text() for path in case.files} == expected
