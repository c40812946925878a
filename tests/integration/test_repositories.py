"""Real git repositories as people have them: worktrees, submodules, branches, links, encodings, line ends."""

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import PathOutsideProject
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

BRANCH_FILES = 3_000


def git(root: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *settings, *arguments], cwd=root, check=True, capture_output=True)


def repository(root: Path, **files: str) -> Path:
    root.mkdir()
    git(root, "init", "-b", "main")
    write(root, **files)
    git(root, "add", "-A")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")


async def ask(central: Application, root: Path, tool: str, **arguments: Any) -> Any:
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    try:
        return json.loads(answer.blocks[0])
    except ValueError:
        return answer.blocks[0]


async def places(central: Application, root: Path, name: str) -> list[str]:
    return [hit["relative_path"] for hit in await ask(central, root, "find_symbol", name_path_pattern=name)]


async def test_a_worktree_is_a_project_of_its_own_and_not_part_of_its_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", shop="class Shop: pass\n")
    git(root, "worktree", "add", "-b", "other", "inside")
    write(root / "inside", branch="class Branch: pass\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert await places(central, root, "Shop") == ["shop.py"]
            assert await places(central, root, "Branch") == []
            assert await places(central, root / "inside", "Branch") == ["branch.py"]
            assert await places(central, root / "inside", "Shop") == ["shop.py"]


async def test_submodules_and_nested_repositories_are_left_to_themselves(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", lib="class Lib: pass\n")
    root = repository(tmp_path / "repo", shop="class Shop: pass\n")
    git(root, "submodule", "add", str(library), "sub")
    repository(root / "nested", deep="class Deep: pass\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert [await places(central, root, name) for name in ("Shop", "Lib", "Deep")] == [["shop.py"], [], []]
            assert await places(central, root / "sub", "Lib") == ["lib.py"]


async def test_a_checkout_of_another_branch_is_seen_whole_by_the_next_call(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "repo", **{f"f{number}": f"def main_{number}(): pass\n" for number in range(BRANCH_FILES)}
    )
    git(root, "checkout", "-b", "other")
    write(root, **{f"f{number}": f"def other_{number}(): pass\n" for number in range(0, BRANCH_FILES, 2)})
    for number in range(1, BRANCH_FILES, 4):
        (root / f"f{number}.py").unlink()
    git(root, "commit", "-am", "second")
    git(root, "checkout", "main")
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            assert await places(central, root, "main_1") == ["f1.py"]
            git(root, "checkout", "other")
            assert await places(central, root, "other_2998") == ["f2998.py"]
            assert [await places(central, root, f"main_{n}") for n in (0, 1, 3)] == [[], [], ["f3.py"]]
            git(root, "checkout", "main")
            assert [await places(central, root, name) for name in ("main_1", "other_0")] == [["f1.py"], []]


async def test_languages_are_named_as_the_files_come_and_go(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", shop="class Shop: pass\n")

    async def named(central: Application) -> str:
        answer = await central.caller.call(session_of(central), "activate_project", {"project": str(root)})
        return answer.blocks[0].rpartition("languages: ")[2]

    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert [await named(central), await named(central)] == ["python).", "python)."]
            (root / "main.go").write_text("package main\n")
            assert await named(central) == "go, python)."
            (root / "shop.py").unlink()
            assert await named(central) == "go)."


async def test_links_add_nothing_and_lead_nowhere_outside(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", shop="class Shop: pass\n")
    (tmp_path / "outside.py").write_text("class Outside: pass\n")
    (root / "again.py").symlink_to("shop.py")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "loop").symlink_to(".")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert await places(central, root, "Shop") == ["shop.py"]
            assert await places(central, root, "Outside") == []
            overview = await ask(central, root, "get_symbols_overview", relative_path="loop/loop/again.py")
            assert overview == {"Class": ["Shop"]}
            with pytest.raises(PathOutsideProject):
                await ask(central, root, "read_file", relative_path="out.py")


async def test_a_rename_that_changes_the_case_alone_leaves_one_file(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", shop="class Shop: pass\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            assert await places(central, root, "Shop") == ["shop.py"]
            git(root, "mv", "shop.py", "Shop.py")
            assert await places(central, root, "Shop") == ["Shop.py"]


LINES = "# é\r\nclass Größe:\r\n    def maß(self):\r\n        return 1\r\n\r\n\r\nx = Größe().maß()\r\n"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
async def test_the_projects_encoding_and_windows_line_ends_are_read_right_everywhere(
    tmp_path: Path, encoding: str
) -> None:
    root = repository(tmp_path / "repo")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(f"encoding: {encoding}\n")
    (root / "a.py").write_bytes(LINES.encode("utf-16-le" if encoding == "utf-16" else encoding))
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            (found,) = await ask(central, root, "find_symbol", name_path_pattern="Größe/maß", include_body=True)
            assert found["body"] == "def maß(self):\r\n        return 1"
            assert found["body_location"] == {"start_line": 2, "end_line": 3, "start_column": 4}
            uses = await ask(central, root, "find_referencing_symbols", name_path="maß", relative_path="a.py")
            assert "  >   6:x = Größe().maß()" in json.dumps(uses, ensure_ascii=False)
            hits = await ask(central, root, "search_for_pattern", substring_pattern="Größe\\(\\)")
            assert hits == {"a.py": ["  >   6:x = Größe().maß()"]}
            assert await ask(central, root, "read_file", relative_path="a.py", start_line=1, end_line=2) == (
                "class Größe:\r\n    def maß(self):"
            )


async def test_files_in_utf_8_are_found_and_edited_where_the_project_is_in_utf_16(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("encoding: utf-16\n")
    (root / "a.py").write_bytes("size = 'é'\n".encode("utf-16-le"))
    (root / "b.py").write_text("size = 'é'\n")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            hits = await ask(central, root, "search_for_pattern", substring_pattern="size")
            assert hits == {name: ["  >   0:size = 'é'"] for name in ("a.py", "b.py")}
            for name in ("a.py", "b.py"):
                change = {"relative_path": name, "needle": "size", "repl": "long", "mode": "literal"}
                await ask(central, root, "replace_content", **change)
    assert (root / "a.py").read_bytes() == "long = 'é'\n".encode("utf-16-le")
    assert (root / "b.py").read_bytes() == "long = 'é'\n".encode()
