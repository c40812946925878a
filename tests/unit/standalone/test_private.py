"""Modes of what we make: ours are private, what people get is as their own umask says."""

import os
import struct
from pathlib import Path

import pytest

from serena_central.standalone.private import NotPrivate, as_user, restrict_umask, secure, share, user_umask

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_users_umask_is_remembered_and_can_be_used_again(tmp_path: Path) -> None:
    os.umask(0o027)
    assert user_umask() == 0o027
    restrict_umask()
    restrict_umask()
    assert user_umask() == 0o027
    (tmp_path / "ours").write_text("")
    with as_user():
        (tmp_path / "theirs").write_text("")
    (tmp_path / "ours too").write_text("")
    assert [mode_of(tmp_path / name) for name in ("ours", "theirs", "ours too")] == [0o600, 0o640, 0o600]


def test_a_shared_folder_keeps_the_setgid_bit_that_it_inherits(tmp_path: Path) -> None:
    os.umask(0o022)
    restrict_umask()
    tmp_path.chmod(0o2700)
    made = tmp_path / "made"
    made.mkdir()
    share(str(made), str(tmp_path), 0o777)
    assert mode_of(made) == 0o2755


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="access lists are set by Linux's xattrs here")
def test_a_default_access_list_decides_alone(tmp_path: Path) -> None:
    os.umask(0o022)
    restrict_umask()
    undefined = 0xFFFFFFFF
    entries = [(0x01, 7, undefined), (0x04, 7, undefined), (0x20, 0, undefined)]  # user rwx, group rwx, others nothing
    wanted = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", wanted)
    except OSError:
        pytest.skip("this file system has no access lists")
    made = tmp_path / "made"
    descriptor = os.open(made, os.O_CREAT | os.O_WRONLY, 0o666)
    share(descriptor, str(tmp_path), 0o666)
    os.close(descriptor)
    assert mode_of(made) == 0o660


def test_links_in_the_home_are_neither_followed_nor_changed(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "file").write_text("")
    (outside / "folder" / "file").chmod(0o644)
    home.mkdir(mode=0o755)
    (home / "link").symlink_to(outside / "folder")
    (home / "dangling").symlink_to("nowhere")
    assert "mode 0755" in (secure(str(home)) or "")
    assert mode_of(outside / "folder" / "file") == 0o644
    assert secure(str(home)) is None


def test_what_a_closed_home_hid_from_others_is_closed_without_a_word(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "cache").mkdir(mode=0o755)
    (home / "cache" / "index").write_text("")
    (home / "cache" / "index").chmod(0o644)
    assert secure(str(home)) is None
    assert (mode_of(home / "cache"), mode_of(home / "cache" / "index")) == (0o700, 0o600)


def test_a_file_in_place_of_the_home_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(FileExistsError):
        secure(str(tmp_path / "home"))


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(NotPrivate, match="belongs to another user"):
        secure(str(tmp_path))
