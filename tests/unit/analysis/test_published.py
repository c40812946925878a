"""What a package hands to whoever installs it: by its manifest, and by the names on the way."""

import pytest

from serena_central.analysis.published import Published
from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import flatten

PYTHON = {
    "pyproject.toml": '[project]\nname = "shop"\n',
    "run.py": "",
    "src/shop/__init__.py": "",
    "src/shop/_inner/__init__.py": "",
}
SCRIPT = {"package.json": '{"name": "shop"}', "app/package.json": '{"name": "app", "private": true}'}


def is_public(files: dict[str, str], path: str, name: str, language: str = "python", code: str = "def x") -> bool:
    span = Range(Position(0, 0), Position(0, len(code)))
    symbols = flatten([DocumentSymbol(name, SymbolKind.FUNCTION, span, span)])
    return Published(files, lambda file: files.get(file, "")).is_public(Hit(path, symbols, 0), Text(code), language)


@pytest.mark.parametrize(
    ("path", "name", "public"),
    [
        ("src/shop/cart.py", "total", True),
        ("src/shop/cart.py", "_total", False),
        ("src/shop/_cart.py", "total", False),
        ("src/shop/_inner/cart.py", "total", False),
        ("src/shop/__init__.py", "total", True),
        ("run.py", "total", False),
        ("docs/conf.py", "total", False),
    ],
)
def test_a_distributed_python_package_hands_out_names_without_underscores(
    path: str, name: str, *, public: bool
) -> None:
    assert is_public(PYTHON, path, name) is public
    assert not is_public({**PYTHON, "pyproject.toml": "[tool.ruff]\n"}, path, name)


@pytest.mark.parametrize(
    ("path", "code", "public"),
    [
        ("src/cart.ts", "export function total() {}", True),
        ("src/cart.ts", "function total() {}", False),
        ("nowhere/cart.ts", "export function total() {}", True),
    ],
)
def test_a_published_javascript_package_hands_out_what_files_export(path: str, code: str, *, public: bool) -> None:
    assert is_public(SCRIPT, path, "total", "typescript", code) is public
    assert not is_public({"package.json": SCRIPT["app/package.json"]}, path, "total", "typescript", code)


def test_other_languages_say_it_themselves() -> None:
    assert not is_public({"go.mod": "module x\n"}, "cart.go", "Total", "go", "func Total() {}")
