"""Files and folders that the server's user may not read: they are listed, and what they hold is known to nobody."""

import encodings.utf_8_sig  # which the other user could not import  # noqa: F401
import json
import os
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from serena_central.files.repository import OuterRules
from serena_central.files.walk import TreeScan

pytestmark = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="becomes another user")

STRANGER = 65534
"""The uid of nobody."""


def seen_by_stranger(root: Path) -> list[list[str]]:
    """What a scan says can't be read, as another user: at first, after a chmod of what is theirs, and after each of
    several of a folder that was known, with the folders that are."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            scan = TreeScan(root, OuterRules(root), use_git=True)
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            scan.look("")
            found = [scan.unreadable()]
            for name in ("mine.py", "own", "gone.py"):
                (root / name).chmod(0o755)
            (root / "gone.py").unlink()
            for name in ("mine.py", "own", "gone.py"):
                scan.examine(scan.folders[""], name)
            found.append(scan.unreadable())
            for mode in (0o000, 0o444, 0o755):
                (root / "own").chmod(mode)
                scan.examine(scan.folders[""], "own")
                found.append([*scan.unreadable(), *sorted(scan.folders)])
            os.write(theirs, json.dumps(found).encode())
        except BaseException:  # noqa: BLE001 - the child must never come back to pytest
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as said:
        found = said.read()
    os.waitpid(child, 0)
    return list(json.loads(found))


@pytest.fixture
def root() -> Generator[Path]:
    """Where another user may go: pytest's own folders are closed."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_what_may_not_be_read_is_told_until_it_may(root: Path) -> None:
    for name in ("open.py", "closed.py", "mine.py", "gone.py", "secret/a.py", "own/a.py", "ignored/a.py"):
        file = root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x = 1\n")
        file.chmod(0o644)
    (root / ".gitignore").write_text("ignored/\n")
    (root / ".git").mkdir()
    for name in (".", "mine.py", "own", "gone.py"):
        os.chown(root / name, STRANGER, STRANGER)
    for name in ("closed.py", "mine.py", "gone.py", "secret", "own", "ignored"):
        (root / name).chmod(0)
    before, after, closed, listed, opened = seen_by_stranger(root)
    assert before == ["closed.py", "gone.py", "mine.py", "own/", "secret/"]
    assert after == ["closed.py", "secret/"]
    assert closed == ["closed.py", "own/", "secret/", ""]
    assert listed == ["closed.py", "own/a.py", "secret/", "", "own/"]
    assert opened == ["closed.py", "secret/", "", "own/"]
