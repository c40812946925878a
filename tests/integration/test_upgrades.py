"""What is known by syntax stays known when a language server comes: it is asked in the background, in nobody's way."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from serena_central.core.event_kinds import ServerInstalled
from tests.integration.test_arriving_servers import go_project, only_path
from tests.integration.test_by_syntax import ask, write_server
from tests.support.central import running_parts
from tests.support.servers import SERVERS_HOME

pytestmark = pytest.mark.anyio

FILES = 60


async def test_after_typescript_was_installed_no_find_waits_for_it_and_no_note_is_stale(tmp_path: Path) -> None:
    """The real server, which first loads a project of many files."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "tsconfig.json").write_text('{"include": ["*.ts"]}\n')
    for number in range(FILES):
        (root / f"part{number}.ts").write_text(f"export function shared(): number {{ return {number}; }}\n")
    paths = {f"part{number}.ts" for number in range(FILES)}
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            found, note = await ask(central, root, "find_symbol", name_path_pattern="shared")
            assert {one["relative_path"] for one in found} == paths
            assert f"{FILES} TypeScript files. Reason: The language server typescript for typescript is not" in note
            project = central.projects.opened(str(root))
            assert project is not None
            (tmp_path / "home" / "servers").mkdir(exist_ok=True)
            (tmp_path / "home" / "servers" / "typescript").symlink_to(SERVERS_HOME / "servers" / "typescript")
            central.bus.publish(ServerInstalled(server="typescript", via="npm"))
            while "typescript" in [one.name for one in project.languages.availability.missing()]:
                await anyio.lowlevel.checkpoint()
            notes: list[str] = []
            while True:
                # All is known at each moment: nothing waits for an answer that a find would wait for as well.
                assert not project.indexer.pending_paths()
                found, note = await ask(central, root, "find_symbol", name_path_pattern="shared")
                assert {one["relative_path"] for one in found} == paths
                if not note:
                    break
                assert "install" not in note
                notes.append(note)
                await anyio.sleep(0.01)
            assert "By syntax only (tree-sitter): " in notes[0]


async def test_a_server_that_made_one_caller_wait_holds_up_no_other_and_answers_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.build.INDEXING.patience_s", 0.2)
    only_path(tmp_path / "bin", monkeypatch)
    write_server(tmp_path / "bin", "gopls", never_initialize=True)
    root = go_project(tmp_path / "shop")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            _, note = await ask(central, root, "find_symbol", name_path_pattern="Total")
            assert "its language server gopls is starting" in note
            # The next one would wait for ever.
            monkeypatch.setattr("serena_central.projects.build.INDEXING.patience_s", 1000)
            (root / "more.go").write_text("package shop\n\nfunc More() {}\n")
            found, note = await ask(central, root, "find_symbol", name_path_pattern="More")
            assert [one["name_path"] for one in found] == ["More"]


async def test_a_server_that_fails_three_times_is_given_up_until_its_configuration_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.build.INDEXING.failure_holds_s", 0.05)
    monkeypatch.setattr("serena_central.projects.build.INDEXING.longest_pause_s", 0.1)
    only_path(tmp_path / "bin", monkeypatch)
    write_server(tmp_path / "bin", "gopls", exit_at_start=3)
    root = go_project(tmp_path / "shop")
    with anyio.fail_after(60):
        async with running_parts(tmp_path) as central:
            note = ""
            while "is not started again for this project until" not in note:
                _, note = await ask(central, root, "find_symbol", name_path_pattern="Total")
                await anyio.sleep(0.02)
            assert "failed 3 times in a row" in note
            (listed,), _ = await ask(central, root, "list_projects")
            assert "failed 3 times in a row" in listed["given_up"]["gopls"]
            for _ in range(10):
                await ask(central, root, "find_symbol", name_path_pattern="Pay", relative_path="till.go")
                await anyio.sleep(0.02)
            (shown,) = central.pool.snapshot()
            assert (shown.run, shown.breaker.state) == (3, "given_up")
            (root / "go.mod").write_text("module shop\n\ngo 1.23\n")
            while shown.run < 4:
                await ask(central, root, "find_symbol", name_path_pattern="Total")
                await anyio.sleep(0.02)
                (shown,) = central.pool.snapshot()
