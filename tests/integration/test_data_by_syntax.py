"""Markdown's sections and TOML's tables are symbols without a language server: listed, found, read and replaced."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.test_by_syntax import ask
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

GUIDE = """\
---
title: Guide
# no heading
---
# Guide

## Usage

```sh
# no heading either
run
```

### Install / Upgrade

By hand.

## Usage

Again.

Later
-----

> # quoted

End.
"""

CARGO = """\
[package]
name = "shop"

[[bin]]
name = "one"

[[bin]]
name = "two"

[bin.env]
key = "value"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "guide.md").write_text(GUIDE)
    (root / "Cargo.toml").write_text(CARGO)
    return root


async def body(central: Any, root: Path, name_path: str, path: str) -> str:
    found, _ = await ask(
        central, root, "find_symbol", name_path_pattern=name_path, relative_path=path, include_body=True
    )
    (symbol,) = found
    return symbol["body"]


async def test_headings_are_a_tree_of_sections_that_are_read_and_replaced(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            listed, note = await ask(central, root, "find_all_symbols", relative_path="guide.md")
            assert listed == {
                "guide.md": [
                    "Guide",
                    "Guide/Usage[0]",
                    "Guide/Usage[0]/Install / Upgrade",
                    "Guide/Usage[1]",
                    "Guide/Later",
                ]
            }
            assert "By syntax only (tree-sitter): 1 Markdown file" in note
            overview, _ = await ask(central, root, "get_symbols_overview", relative_path="guide.md", depth=1)
            assert overview == {"String": [{"Guide": {"String": ["Usage[0]", "Usage[1]", "Later"]}}]}
            assert await body(central, root, "Guide/Later", "guide.md") == "Later\n-----\n\n> # quoted\n\nEnd."
            for name in ("Install / Upgrade", "Usage/Install / Upgrade", "/Guide/Usage[0]/Install / Upgrade"):
                assert await body(central, root, name, "guide.md") == "### Install / Upgrade\n\nBy hand."
            where = {"relative_path": "guide.md"}
            await ask(
                central, root, "replace_symbol_body", name_path="Guide/Usage[1]", body="## Use\n\nNew.\n", **where
            )
            await ask(central, root, "insert_after_symbol", name_path="Install / Upgrade", body="### More\n", **where)
            changed = GUIDE.replace("## Usage\n\nAgain.", "## Use\n\nNew.").replace("hand.\n", "hand.\n\n### More\n")
            assert (root / "guide.md").read_text() == changed
            before = {"name_path": "Guide/Later", "body": "Plain text."}
            await ask(central, root, "insert_before_symbol", **before, **where)
            changed = changed.replace("Later\n---", "Plain text.\n\nLater\n---")
            assert (root / "guide.md").read_text() == changed


async def test_each_table_of_an_array_is_one_symbol(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            listed, _ = await ask(central, root, "find_all_symbols", relative_path="Cargo.toml")
            assert listed["Cargo.toml"] == [
                "package",
                "package/name",
                "bin[0]",
                "bin[0]/name",
                "bin[1]",
                "bin[1]/name",
                "bin[1]/env",
                "bin[1]/env/key",
            ]
            assert await body(central, root, "bin[1]/name", "Cargo.toml") == 'name = "two"'
            new = {"name_path": "bin[0]", "body": '[[bin]]\nname = "first"\n', "relative_path": "Cargo.toml"}
            await ask(central, root, "replace_symbol_body", **new)
            assert (root / "Cargo.toml").read_text() == CARGO.replace('"one"', '"first"')
