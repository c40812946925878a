"""A project of so many files that the syntax stands in for servers: all are known soon, whatever servers do."""

from pathlib import Path

import anyio
import pytest

from serena_central.symbols.indexing.policy import IndexingPolicy
from tests.integration.test_by_syntax import ask, write_server
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

FILES = IndexingPolicy().many_files + 50
DATA = 400
"""Files that hold no symbols, and that nobody reads."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module, and a gopls that starts and never says what a file holds."""
    write_server(tmp_path / "bin", "gopls", hang_on=["textDocument/documentSymbol"])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / "go.mod").write_text("module example.com/many\n\ngo 1.22\n")
    for number in range(FILES):
        (root / f"p{number % 20}").mkdir(exist_ok=True)
        (root / f"p{number % 20}" / f"f{number}.go").write_text(f"package p{number % 20}\n\nfunc F{number}() {{}}\n")
    for number in range(DATA):
        (root / f"data{number}.json").write_text("{}")
    return root


async def test_all_files_are_known_soon_and_stay_so_while_servers_are_asked(tmp_path: Path, root: Path) -> None:
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            project = await central.projects.open(central.projects.check(root))
            while not project.indexer.is_complete:
                await anyio.sleep(0.02)
            while not central.pool.snapshot():  # the background asks again what is known by syntax
                await anyio.sleep(0.02)
            assert project.indexer.progress.indexed == FILES
            project.server_installed("bash-language-server")  # another server may answer for any file now
            while not project.indexer.is_complete:
                await anyio.sleep(0.02)
            assert project.indexer.progress.indexed == FILES
            (root / "p0" / "new.go").write_text("package p0\n\nfunc Arrived() {}\n")
            found, _ = await ask(central, root, "find_symbol", name_path_pattern="Arrived")
            assert [one["relative_path"] for one in found] == ["p0/new.go"]
