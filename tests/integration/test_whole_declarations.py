"""An edit whose range is no whole declaration is refused by every tool that changes code: the file stays as it is."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import EditRefused
from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.syntax.outline import outline
from tests.integration.test_by_syntax import ask, write_server
from tests.support.central import running_parts
from tests.unit.symbols.syntax.test_declarations import all_of

pytestmark = pytest.mark.anyio

SAMPLES = Path(__file__).parents[1] / "unit" / "symbols" / "syntax" / "samples"

SERVERS = {
    "c": ("clangd", "a.c", "any"),
    "php": ("intelephense", "a.php", "Stock"),
    "shellscript": ("bash-language-server", "a.sh", "leave"),
    "toml": ("tombi", "a.toml", "package"),
    "typescript": ("tsc", "a.ts", "later"),
}
"""Grammar's sample → the server that speaks for it (as a scripted one), a file, and what is edited in it."""

EDITS: dict[str, dict[str, Any]] = {
    "replace_symbol_body": {"body": "other"},
    "insert_before_symbol": {"body": "other"},
    "insert_after_symbol": {"body": "other"},
    "safe_delete_symbol": {"force": True},
}


def lsp(text: Text, symbol: DocumentSymbol, lines: int, columns: int) -> dict[str, Any]:
    """What a server says of a symbol whose range it moved by so much; its name stays."""

    def place(position: Position, *, moved: bool) -> dict[str, int]:
        line, character = text.to_lsp(position, "utf-8")
        return {"line": line + moved * lines, "character": character + moved * columns}

    def span(of: Range, *, moved: bool) -> dict[str, Any]:
        return {"start": place(of.start, moved=moved), "end": place(of.end, moved=moved)}

    whole, name = span(symbol.range, moved=True), span(symbol.selection, moved=False)
    return {"name": symbol.name, "kind": symbol.kind, "range": whole, "selectionRange": name, "children": []}


@pytest.mark.parametrize("identifier", SERVERS)
async def test_a_shifted_range_is_refused_by_every_editing_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identifier: str
) -> None:
    server, name, symbol_name = SERVERS[identifier]
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    source = (SAMPLES / f"{identifier}.txt").read_bytes()
    text = Text(source.decode())
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / name).write_bytes(source)
    (root / "compile_flags.txt").touch()  # the build is known: else the syntax is believed where it tells more
    symbol = next(one for one in all_of(outline(identifier, source)[0]) if one.name == symbol_name)
    answers = {"textDocument/documentSymbol": [lsp(text, symbol, 0, 3)]}
    write_server(tmp_path / "bin", server, answers=answers)
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            asked = {"name_path_pattern": symbol_name, "relative_path": name}
            while "By syntax only" in (await ask(central, root, "find_symbol", **asked))[1]:
                await anyio.sleep(0.05)  # until the server has told its own, on a busy machine
            for tool, arguments in EDITS.items():
                named = "name_path_pattern" if tool == "safe_delete_symbol" else "name_path"
                with pytest.raises(EditRefused, match="the extent of the definition of"):
                    await ask(central, root, tool, **{named: symbol_name}, relative_path=name, **arguments)
                assert (root / name).read_bytes() == source
