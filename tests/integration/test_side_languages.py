"""A few files of another language start, install and hold up nothing until somebody asks about one of them."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.test_by_syntax import ask, symbol, write_server
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

SCRIPT = "deploy() {\n  echo deployed\n}\n"


def project(root: Path, *, python: int, settings: str = "") -> Path:
    """Python files, one Bash script and one in protobuf, for which there is no grammar."""
    (root / ".git").mkdir(parents=True)
    for number in range(python):
        (root / f"part{number}.py").write_text(f"def work{number}():\n    return deploy\n")
    (root / "deploy.sh").write_text(SCRIPT)
    (root / "old.proto").write_text("message deploy {}\n")
    if settings:
        (root / ".serena").mkdir()
        (root / ".serena" / "project.yml").write_text(settings)
    return root


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of PATH with a Bash and a protobuf server that would be found if they were looked for."""
    folder = tmp_path / "bin"
    said = {"textDocument/documentSymbol": [symbol("Said", 12, 0)]}
    for name in ("bash-language-server", "buf"):
        write_server(folder, name, answers=said)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def running(central: Any) -> set[str]:
    return {one.server for one in central.pool.snapshot()}


async def until(central: Any, root: Path, wanted: set[str], **arguments: Any) -> str:
    """Finds again until exactly these symbols are found; the notes of the last answer."""
    while True:
        found, note = await ask(central, root, "find_symbol", **arguments)
        if {one["name_path"] for one in found} == wanted:
            return note
        await anyio.sleep(0.02)


@pytest.mark.usefixtures("path")
async def test_a_side_language_is_by_syntax_or_not_at_all_until_a_file_of_it_is_named(tmp_path: Path) -> None:
    root = project(tmp_path / "root", python=200)
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            found, note = await ask(central, root, "find_symbol", name_path_pattern="deploy")
            assert [one["relative_path"] for one in found] == ["deploy.sh"]
            assert "Bash and other shells by syntax only (1 of 202 code files)" in note
            assert "Protocol Buffers not searched (1 of 202 code files)" in note
            (listed,), _ = await ask(central, root, "list_projects")
            assert len(listed["side_languages"]) == 2
            _, again = await ask(central, root, "find_symbol", name_path_pattern="work7")
            assert again == ""
            await ask(central, root, "find_all_symbols", relative_path="")
            assert running(central) == {"ty"}
            # Somebody asks: what is known is said at once, and the server's own word comes in the background.
            found, note = await ask(central, root, "find_symbol", name_path_pattern="deploy", relative_path="deploy.sh")
            assert "By syntax only (tree-sitter): 1 Bash file" in note
            await until(central, root, {"Said"}, name_path_pattern="Said", relative_path="deploy.sh")
            assert "bash" in str(running(central))
            assert not [server for server in running(central) if server == "buf"]


async def test_a_woken_side_language_is_noted_once_in_a_session_though_its_server_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    root = project(tmp_path / "root", python=200)
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            _, note = await ask(central, root, "find_symbol", name_path_pattern="deploy", relative_path="deploy.sh")
            assert "By syntax only (tree-sitter): 1 Bash file" in note
            await ask(central, root, "find_symbol", name_path_pattern="work7")
            _, note = await ask(central, root, "find_symbol", name_path_pattern="work8")
            assert note == ""
            (listed,), _ = await ask(central, root, "list_projects")
            assert "Bash and other shells by syntax only (1 of 202 code files)" in listed["side_languages"]
            servers = {one["server"]: one["state"] for one in listed["servers"]}
            assert servers.get("bash-language-server") in (None, "not installed"), servers


@pytest.mark.usefixtures("path")
async def test_nothing_is_a_side_language_in_a_project_of_few_files(tmp_path: Path) -> None:
    root = project(tmp_path / "root", python=8)
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            await until(central, root, {"Said"}, name_path_pattern="Said", substring_matching=False)
            _, note = await ask(central, root, "find_symbol", name_path_pattern="work7")
            assert "side" not in note
            assert len(running(central)) == 3


@pytest.mark.usefixtures("path")
async def test_a_language_that_the_projects_settings_name_is_no_side_language(tmp_path: Path) -> None:
    root = project(tmp_path / "root", python=200, settings="language_servers:\n  bash: {memory_mb: 77}\n")
    with anyio.fail_after(120):
        async with running_parts(tmp_path) as central:
            await until(central, root, {"Said"}, name_path_pattern="Said")
            assert len(running(central)) == 2  # ty and Bash's
