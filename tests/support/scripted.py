"""Projects whose language server is scripted: a whole server, here or in a child, takes `fake_server` for ty.

The fake stands where an installed ty would, below the server's home, so that no part of the product knows of it. Each
project has a script of its own, which is read at every start and may be changed in between.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.fakes import FAKE_SERVER

CART = "class Cart:\n    def total(self) -> int:\n        return 0\n"

SYMBOLS = "textDocument/documentSymbol"
REFERENCES = "textDocument/references"
DEFINITION = "textDocument/definition"
RENAME = "textDocument/rename"


def scripted_ty(folder: Path) -> None:
    """Puts the fake below the home that `running_central(folder)` and `serving_child(folder)` use. Its projects are
    trusted, since it writes a log beside them."""
    settings = folder / "user" / ".serena" / "serena_config.yml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"trusted_roots: [{json.dumps(str(folder))}]\n")
    programs = folder / "home" / "servers" / "ty" / "999" / "bin"
    programs.mkdir(parents=True)
    scripts = folder / "scripts"
    scripts.mkdir()
    fake = shlex.join([sys.executable, "-I", "-S", str(FAKE_SERVER)])
    program = programs / "ty"
    program.write_text(
        f'#!/bin/sh\nread -r script < {shlex.quote(str(scripts))}/"${{PWD##*/}}"\nexec {fake} "$script"\n'
    )
    program.chmod(0o755)


def scripted_project(folder: Path, name: str = "shop", **script: Any) -> Path:
    """A project with `cart.py`, whose server knows `Cart/total` and behaves as the script says."""
    root = folder / name
    root.mkdir()
    (root / "cart.py").write_text(CART)
    behave(folder, name, **script)
    return root


def behave(folder: Path, name: str = "shop", **script: Any) -> None:
    """How the server of that project behaves from its next start on; its log is `log_in(folder, name)`."""
    cart = (folder / name / "cart.py").as_uri()
    answers = {SYMBOLS: _symbols(), REFERENCES: [{"uri": cart, "range": _range(1, 8, 13)}], **script.pop("answers", {})}
    script = {"log": str(log_in(folder, name)), "capabilities": DEFAULT_CAPABILITIES, **script, "answers": answers}
    fresh = folder / "scripts" / f"{name}.new"
    fresh.write_text(json.dumps(script) + "\n")
    fresh.replace(folder / "scripts" / name)


def log_in(folder: Path, name: str = "shop") -> Path:
    return folder / f"{name}.jsonl"


def _symbols() -> list[dict[str, Any]]:
    total = {"name": "total", "kind": 6, "range": _range(1, 4, 16, end_line=2), "selectionRange": _range(1, 8, 13)}
    cart = {"name": "Cart", "kind": 5, "range": _range(0, 0, 16, end_line=2), "selectionRange": _range(0, 6, 10)}
    return [{**cart, "children": [total]}]


def _range(line: int, start: int, end: int, *, end_line: int | None = None) -> dict[str, Any]:
    last = line if end_line is None else end_line
    return {"start": {"line": line, "character": start}, "end": {"line": last, "character": end}}
