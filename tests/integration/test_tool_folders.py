"""What package managers, builds and language servers leave in a project is no part of it, also if git was not told."""

import json
from pathlib import Path

import anyio
import pytest

from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches
from tests.integration.test_by_syntax import ask
from tests.support.central import running_parts
from tests.support.languages import WITHOUT_STD
from tests.support.servers import SERVERS_HOME

pytestmark = pytest.mark.anyio

LEFT = (
    "node_modules/left/index.js",
    "web/node_modules/left/index.js",
    ".zig-cache/o/1/options.zig",
    ".cache/clangd/index/a.c.1.idx",
    "native/.cache/clangd/index/a.c.1.idx",
    ".gradle/8.5/a.kts",
    ".gopls/cache.go",
)
OURS = ("app.py", "venv/package.py", ".cargo/config.toml", "build/tool.py", "target/arch.py")


async def test_folders_that_tools_fill_are_left_out_of_a_repository_without_ignore_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in (*LEFT, *OURS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "web" / ".gitignore").write_text("!node_modules\n")
    watches, tree = Watches(), None
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(watches.run)
            tree = FileTree(tmp_path, watches)
            await tasks.start(tree.run)
            taken_back = {"web/.gitignore", "web/node_modules/left/index.js"}
            assert set(tree.files) == {*OURS, *taken_back}
            tasks.cancel_scope.cancel()


async def test_what_rust_analyzer_and_clangd_build_never_becomes_project_files(tmp_path: Path) -> None:
    """The real servers; cargo and CMake mark what they fill, clangd's index is known by its name."""
    root = tmp_path / "mixed"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "Cargo.toml").write_text('[package]\nname = "mixed"\nversion = "0.1.0"\nedition = "2021"\n')
    (root / "src" / "lib.rs").write_text("pub fn total() -> u32 { 1 }\npub fn twice() -> u32 { total() * 2 }\n")
    (root / "a.c").write_text("int sum(void) { return 1; }\nint main(void) { return sum(); }\n")
    command = {"directory": str(root), "file": "a.c", "arguments": ["cc", "-c", "a.c"]}
    (root / "compile_commands.json").write_text(json.dumps([command]))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "servers").symlink_to(SERVERS_HOME / "servers")
    before = {"Cargo.toml", "src/lib.rs", "a.c", "compile_commands.json"}
    with anyio.fail_after(120):
        async with running_parts(tmp_path, {"language_servers": WITHOUT_STD}) as central:
            for name, path in (("total", "src/lib.rs"), ("sum", "a.c")):
                found, _ = await ask(central, root, "find_referencing_symbols", name_path=name, relative_path=path)
                assert found
            await anyio.run_process(["cargo", "check", "--quiet", "--offline"], cwd=root)
            project = central.projects.opened(str(root))
            assert project is not None
            await project.fresh()
            assert (root / "target" / "debug").is_dir()
            assert set(project.tree.files) - before <= {"Cargo.lock"}
