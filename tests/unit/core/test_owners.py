"""Settings above a project that somebody else put there."""

import os
from pathlib import Path

import pytest

from serena_central.core.owners import first_strangers_above, is_strangers


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


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
def test_the_nearest_entry_of_others_above_a_root_is_found(tmp_path: Path) -> None:
    root = tmp_path / "around" / "project"
    root.mkdir(parents=True)
    names = ("go.work", ".cargo/config.toml")
    inside, near, far = root / "go.work", root.parent / ".cargo/config.toml", tmp_path / "go.work"
    for file in (inside, near, far):
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    assert first_strangers_above(root, names) is None
    for file in (inside, far):
        os.chown(file, 65534, -1)
    assert first_strangers_above(root, names) == far
    os.chown(near.parent, 65534, -1)
    assert first_strangers_above(root, names) == near
