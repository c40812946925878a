"""Settings above a project that somebody else put there."""

import os
from pathlib import Path

import pytest

from serena_central.core.owners import is_strangers


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
def test_files_of_others_in_a_shared_folder_are_a_strangers(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    file = tmp_path / ".serena" / "project.yml"
    file.parent.mkdir()
    assert not is_strangers(file, root)
    file.write_text("")
    assert not is_strangers(file, root)
    os.chown(file, 65534, -1)
    assert is_strangers(file, root)
    os.chown(file, 0, -1)
    os.chown(file.parent, 65534, -1)
    assert is_strangers(file, root)
    os.chown(root, 65534, -1)
    assert not is_strangers(file, root), "who owns the project may configure it"
