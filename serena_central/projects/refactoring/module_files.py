"""Finds the files of a Rust module: `mod shapes;` brings in one, and a folder may hold its own modules.

By the text and rustc's rules (The Rust Reference, "Module source filenames"): a server is silent about modules behind a
`cfg` that is off.
"""

import os
import re
from pathlib import Path, PurePosixPath

from serena_central.core.text import Range, Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)

_PATH = re.compile(r'\bpath\s*=\s*r?#*"([^"]+)"')
"""In an attribute of a module, also within `cfg_attr`."""

_NAMED_FOR_FOLDER = ("mod.rs", "lib.rs", "main.rs")
"""Files whose modules lie beside them."""


def files_brought_in(hit: Hit, text: Text, language: str | None) -> list[str]:
    """Root-relative paths at which the file of a module without a body may lie; none for any other symbol. Of all that
    a `path` names under several conditions, each counts."""
    if language != "rust" or hit.symbol.kind != SymbolKind.MODULE:
        return []
    declared = _COMMENT.sub("", text.slice(hit.symbol.range)).rstrip()
    if not declared.endswith(";"):
        return []
    file, name = PurePosixPath(hit.path), hit.symbol.name.removeprefix("r#")
    around = _modules_around(hit)
    own = file.parent if file.name in _NAMED_FOR_FOLDER else file.parent / file.stem
    usual = [
        folder.joinpath(*around) / end for folder in (own, file.parent) for end in (f"{name}.rs", f"{name}/mod.rs")
    ]
    named = [folder / path for path in _PATH.findall(declared) for folder in (file.parent, own.joinpath(*around))]
    return list(dict.fromkeys(os.path.normpath(path) for path in (*named, *usual)))


def has_path(hit: Hit, text: Text, language: str | None) -> bool:
    """Whether a Rust module's attribute says where its file is, whatever the module is called."""
    is_module = language == "rust" and hit.symbol.kind == SymbolKind.MODULE
    return is_module and _PATH.search(_COMMENT.sub("", text.slice(_heading_of(hit)))) is not None


def _heading_of(hit: Hit) -> Range:
    return Range(hit.symbol.range.start, hit.symbol.name_position)


def has_code(text: str) -> bool:
    """Whether anything but comments stands in a file of Rust."""
    return bool(_COMMENT.sub("", text).strip())


def files_below(folder: Path) -> list[Path]:
    """All files in a folder and below, links to folders among them, which are not followed. Blocks."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        links = (folder for name in folders if (folder := Path(where, name)).is_symlink())
        found += (*links, *(Path(where, name) for name in names))
    return found


def _modules_around(hit: Hit) -> list[str]:
    names: list[str] = []
    container = hit.symbol.container
    while container >= 0:
        symbol = hit.file.symbols[container]
        names.insert(0, symbol.name)
        container = symbol.container
    return names
