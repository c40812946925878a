"""Files that the server's user may not read: answers say so, and nothing that they may use is renamed or deleted."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from serena_central.core.nofollow import OpenFolder
from serena_central.files import walk
from tests.integration.languages.test_renamed_members import written
from tests.integration.languages.test_sibling_edits import session
from tests.support.languages import asker, called_patiently
from tests.support.superrepo import PAIRS, platform

pytestmark = pytest.mark.anyio

FILES = {
    "m.py": "def f() -> int:\n    return 1\n\n\ndef _g() -> int:\n    return 2\n",
    "closed.py": "import m\n\nprint(getattr(m, 'f')(), getattr(m, '_g')())\n",
    "secret/a.py": "nothing = 0\n",
}


def text_of(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


@pytest.fixture(autouse=True)
def _may_not_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # who may read everything: as the kernel tells others
        opened = OpenFolder.at

        def at(path: str, *arguments: Any) -> Any:
            if path.rstrip("/").endswith("/secret"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, *arguments)

        monkeypatch.setattr(OpenFolder, "at", at)
        monkeypatch.setattr(walk, "may_read", lambda _path, status: bool(status.st_mode & 0o400))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = written(tmp_path / "shop", FILES)
    (root / "closed.py").chmod(0)
    (root / "secret").chmod(0)
    return root


async def test_answers_name_what_could_not_be_read_and_changes_are_refused(tmp_path: Path, root: Path) -> None:
    async with asker(tmp_path, root) as client:
        rename = {"name_path": "f", "relative_path": "m.py", "new_name": "ff"}
        for tool, arguments in (
            ("find_symbol", {"name_path_pattern": "f"}),
            ("find_referencing_symbols", {"name_path": "f", "relative_path": "m.py"}),
            ("search_for_pattern", {"substring_pattern": "nothing like it"}),
            ("list_dir", {"relative_path": "secret", "recursive": False}),
        ):
            said = await client.result(tool, **arguments)
            assert "Not read: 2 files and folders" in text_of(said), (tool, text_of(said))
            assert "'closed.py', 'secret/'" in text_of(said)
        for tool, arguments in (("rename_symbol", rename), ("safe_delete_symbol", {"name_path": "_g"})):
            refused = await client.result(tool, **arguments)
            assert refused["isError"], text_of(refused)
            assert "no permission to read, may refer to" in text_of(refused)
        assert (root / "m.py").read_text() == FILES["m.py"]
        renamed = await client.result("rename_symbol", **rename, force=True)
        assert not renamed["isError"], text_of(renamed)
        assert "Not read: 2 files and folders" in text_of(renamed)
        assert (root / "m.py").read_text().startswith("def ff()")


async def test_what_is_ignored_may_be_closed(tmp_path: Path, root: Path) -> None:
    (root / ".gitignore").write_text("secret/\nclosed.py\n")
    async with asker(tmp_path, root) as client:
        renamed = await client.result("rename_symbol", name_path="f", relative_path="m.py", new_name="ff")
        assert not renamed["isError"], text_of(renamed)
        assert "Not read" not in text_of(renamed)


async def test_a_module_whose_files_can_t_be_read_may_use_what_others_declare(tmp_path: Path) -> None:
    pair = next(one for one in PAIRS if one.language == "python")
    root = platform(tmp_path)
    closed = root / "modules" / pair.sibling / "closed.py"
    closed.write_text("nothing = 0\n")
    closed.chmod(0)
    symbol = {"name_path": pair.name, "relative_path": pair.file}
    both = [pair.declaring, pair.sibling]
    async with session(tmp_path, root) as (client, _):
        for tool, arguments in (
            ("rename_symbol", {**symbol, "project": both, "new_name": "Renamed9"}),
            ("safe_delete_symbol", {**symbol, "project": pair.declaring}),
        ):
            refused = await called_patiently(client, tool, **arguments)
            assert refused["isError"], text_of(refused)
            assert "no permission to read 'closed.py'" in text_of(refused)
        renamed = await called_patiently(
            client, "rename_symbol", **symbol, project=both, new_name="Renamed9", force=True, dry_run=True
        )
        assert not renamed["isError"], text_of(renamed)
