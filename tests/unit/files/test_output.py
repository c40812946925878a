"""Folders that build tools fill are ignored, also where no ignore file names them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches

pytestmark = pytest.mark.anyio


TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a build tool\n"


def write(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TAG if name.endswith("CACHEDIR.TAG") else "")


@asynccontextmanager
async def running(root: Path, ignored_paths: Sequence[str] = ()) -> AsyncGenerator[FileTree]:
    watches = Watches()
    tree = FileTree(root, watches, ignored_paths=ignored_paths)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(60):
            await tasks.start(watches.run)
            await tasks.start(tree.run)
            yield tree
        tasks.cancel_scope.cancel()


async def files_of(root: Path, ignored_paths: Sequence[str] = ()) -> list[str]:
    async with running(root, ignored_paths) as tree:
        return sorted(tree.files)


async def test_what_cargo_and_cmake_build_is_left_out_and_sources_beside_cmakes_settings_are_not(
    tmp_path: Path,
) -> None:
    write(
        tmp_path, ".git/HEAD", "src/lib.rs", "target/CACHEDIR.TAG", "target/debug/lib.d", "target/package/x/src/lib.rs"
    )
    write(tmp_path, "CMakeLists.txt", "CMakeCache.txt", "main.c", "out/CMakeCache.txt", "out/CMakeFiles/3/C.cmake")
    assert await files_of(tmp_path) == ["CMakeCache.txt", "CMakeLists.txt", "main.c", "src/lib.rs"]


async def test_a_project_that_lies_in_such_a_folder_has_its_files_and_a_rule_takes_a_folder_back(
    tmp_path: Path,
) -> None:
    write(tmp_path, ".git/HEAD", "CACHEDIR.TAG", "a.py", "cache/CACHEDIR.TAG", "cache/b.py")
    assert await files_of(tmp_path) == ["CACHEDIR.TAG", "a.py"]
    both = ["CACHEDIR.TAG", "a.py", "cache/CACHEDIR.TAG", "cache/b.py"]
    assert await files_of(tmp_path, ignored_paths=["!cache/"]) == both


async def test_a_folder_counts_as_soon_as_it_is_marked_and_no_longer_than_that(tmp_path: Path) -> None:
    write(tmp_path, "target/debug/lib.d", "target/a.rs")
    async with running(tmp_path) as tree:
        assert sorted(tree.files) == ["target/a.rs", "target/debug/lib.d"]
        write(tmp_path, "target/CACHEDIR.TAG", "target/debug/more.d")
        await tree.fresh()
        assert sorted(tree.files) == []
        assert tree.is_ignored("target/debug/lib.d")
        (tmp_path / "target" / "CACHEDIR.TAG").unlink()
        await tree.fresh()
        assert sorted(tree.files) == ["target/a.rs", "target/debug/lib.d", "target/debug/more.d"]


async def test_a_file_that_is_only_called_like_the_tag_marks_nothing_until_it_is_one(tmp_path: Path) -> None:
    write(tmp_path, ".git/HEAD", "lib/a.py")
    (tmp_path / "lib" / "CACHEDIR.TAG").write_text("Signature: none\n")
    async with running(tmp_path) as tree:
        assert ("lib/a.py" in tree.files, tree.outputs()) == (True, [])
        (tmp_path / "lib" / "CACHEDIR.TAG").write_text(TAG)
        await tree.fresh()
        assert ("lib/a.py" in tree.files, tree.outputs()) == (False, ["lib/"])
