"""Where files are expected, a repository may have links to devices, and another user pipes: nothing waits for those."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support.child import PATIENCE_S, serving_child
from tests.support.scripted import CART, scripted_ty

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices in the file system"),
]

NAMES = (
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/CLAUDE.md",
    "CLAUDE.md",
    "AGENTS.md",
    ".gitignore",
    ".serena/project.yml",
    ".serena/project.local.yml",
    ".serena/memories/notes.md",
    ".claude/agents/a.md",
    ".git",
    "pyproject.toml",
    "package.json",
    "tsconfig.json",
    "go.mod",
    "go.work",
    "Cargo.toml",
    "compile_commands.json",
    ".venv/pyvenv.cfg",
)


def pipe(file: Path) -> None:
    os.mkfifo(file)


def endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize("made", [pipe, endless])
@pytest.mark.parametrize("place", ["the project", "the folder above"])
async def test_the_server_answers_whatever_lies_where_settings_would(
    tmp_path: Path, place: str, made: Callable[[Path], None]
) -> None:
    """One `.mcp.json` of an untrusted repository held up all calls of everybody."""
    scripted_ty(tmp_path)
    root = tmp_path / "src" / "shop"
    root.mkdir(parents=True)
    (root / "cart.py").write_text(CART)
    for name in NAMES:
        file = (root if place == "the project" else root.parent) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        made(file)
    async with serving_child(tmp_path) as child:
        with anyio.fail_after(PATIENCE_S):
            found = await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(root)})
            assert [one["name_path"] for one in found] == ["Cart"]
            assert "cart.py" in (await child.call("list_dir", {"relative_path": ".", "project": str(root)}))["files"]
            async with child.http() as http:
                for path in ("/projects", "/upstreams"):
                    assert (await http.get(f"/api/v1{path}")).status_code == 200
