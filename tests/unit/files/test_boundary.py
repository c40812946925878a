"""Nothing leads out of a project's root, whatever the path looks like, and every refusal says why."""

import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serena_central.core.errors import PathError, PathNotFound, PathOutsideProject, PathRefused
from serena_central.files import mounts
from serena_central.files.boundary import from_shown, relative, resolve_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("x = 1\n")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "project-2").mkdir()
    return folder


@pytest.mark.parametrize("path", ["src/main.py", "./src//main.py", "src/../src/main.py", "missing/../src/main.py"])
def test_a_path_inside_is_found_however_it_is_written(root: Path, path: str) -> None:
    assert resolve_inside(root, path) == root / "src" / "main.py"


@pytest.mark.parametrize("path", ["", ".", "./", "src/.."])
def test_the_root_itself_is_inside(root: Path, path: str) -> None:
    assert resolve_inside(root, path) == root


def test_an_absolute_path_inside_is_accepted(root: Path) -> None:
    assert resolve_inside(root, str(root / "src")) == root / "src"


@pytest.mark.parametrize(
    "path", ["..", "../secret.txt", "src/../../secret.txt", "missing/../../secret.txt", "/etc/passwd", "../project-2"]
)
@pytest.mark.parametrize("must_exist", [True, False])
def test_a_path_that_leads_out_is_refused(root: Path, path: str, must_exist: bool) -> None:
    with pytest.raises(PathOutsideProject):
        resolve_inside(root, path, must_exist=must_exist)


def test_a_symlink_out_of_the_project_is_refused_and_one_inside_is_followed(root: Path) -> None:
    (root / "out").symlink_to(root.parent)
    (root / "again").symlink_to("src/main.py")
    with pytest.raises(PathOutsideProject):
        resolve_inside(root, "out/secret.txt")
    with pytest.raises(PathOutsideProject):
        resolve_inside(root, "out/new.txt", must_exist=False)
    assert resolve_inside(root, "again") == root / "src" / "main.py"


def test_a_path_into_a_remote_file_system_is_outside_without_a_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = root.parent / "project-2"
    monkeypatch.setattr(mounts.REMOTE, "points", lambda: frozenset({str(remote)}))
    monkeypatch.setattr(mounts, "_answers", pytest.fail)
    (remote / "back").symlink_to(root)
    (root / "out").symlink_to("../project-2")
    for path in ("out", "out/back/src/main.py", str(remote / "back"), "out/\\xe9"):
        with pytest.raises(PathOutsideProject):
            resolve_inside(root, from_shown(root, path))


@pytest.mark.parametrize("mounted", ["project", "project/src"])
def test_a_file_system_that_does_not_answer_is_waited_for_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, mounted: str
) -> None:
    point = str(root.parent / mounted)
    is_back = threading.Event()
    looks: list[str] = []

    def look_at(path: str) -> None:
        looks.append(path)
        is_back.wait(60)

    monkeypatch.setattr(mounts.REMOTE, "points", lambda: frozenset({point}))
    monkeypatch.setattr(mounts, "PATIENCE_S", 0.05)
    monkeypatch.setattr(mounts, "_look_at", look_at)
    for _ in range(3):
        with pytest.raises(PathRefused, match="does not answer"):
            resolve_inside(root, "src/main.py")
    assert looks == [point]
    is_back.set()
    assert mounts._looks[point].done.wait(60)
    monkeypatch.setattr(mounts, "PATIENCE_S", 60)
    assert resolve_inside(root, "src/main.py") == root / "src" / "main.py"
    assert looks == [point]


def test_who_asks_while_a_file_system_is_looked_at_waits_for_the_same_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    looks: list[str] = []

    def look_at(path: str) -> None:
        looks.append(path)
        both.wait(60)

    monkeypatch.setattr(mounts, "_looks", {})
    monkeypatch.setattr(mounts, "PATIENCE_S", 60)
    monkeypatch.setattr(mounts.REMOTE, "points", lambda: frozenset({str(root)}))
    monkeypatch.setattr(mounts, "_look_at", look_at)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(mounts.check_answers, f"{root}/src") for _ in range(2)]
        while not looks:
            pass
        both.wait(60)
        assert [one.result(60) for one in asked] == [None, None]
    assert looks == [str(root)]


def test_paths_stay_below_the_root_as_it_was_given_when_that_is_a_symlink(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert resolve_inside(alias, "src/main.py") == alias / "src" / "main.py"
    assert resolve_inside(alias, str(root / "src")) == alias / "src"


def test_what_is_missing_names_what_is_alike(root: Path) -> None:
    with pytest.raises(PathNotFound, match=r"src/main\.py"):
        resolve_inside(root, "src/mian.py")
    with pytest.raises(PathNotFound):
        resolve_inside(root, "no/such/folder")
    assert resolve_inside(root, "src/new/deep.py", must_exist=False) == root / "src" / "new" / "deep.py"


@pytest.mark.parametrize("path", ["src/main.py\0", "\0", "a" * 5000, "x/" * 3000, "\ud800", "src/main.py/x"])
@pytest.mark.parametrize("must_exist", [True, False])
def test_a_path_that_can_not_be_one_is_refused(root: Path, path: str, must_exist: bool) -> None:
    with pytest.raises(PathError):
        resolve_inside(root, path, must_exist=must_exist)


def test_pipes_sockets_devices_and_loops_are_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        for name in ("pipe", "socket", "loop"):
            with pytest.raises(PathRefused):
                resolve_inside(root, name)
    with pytest.raises(PathRefused, match="device"):
        resolve_inside(Path("/"), "dev/null")


def test_relative_gives_posix_paths_and_refuses_what_is_outside(root: Path) -> None:
    assert relative(root, root / "src" / "main.py") == "src/main.py"
    assert relative(root, root) == "."
    assert relative(Path("/"), Path("/etc/hosts")) == "etc/hosts"
    with pytest.raises(PathOutsideProject):
        relative(root, root.parent / "project-2")


def test_a_link_that_ceases_to_be_one_while_it_is_followed_is_looked_at_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = root / "again"
    link.symlink_to("src/main.py")
    readlink = os.readlink

    def late(path: str) -> str:
        link.unlink()
        link.write_text("")
        return readlink(path)

    monkeypatch.setattr(os, "readlink", late)
    assert resolve_inside(root, "again") == link


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="realpath takes what is no link any more for what it is")
def test_links_that_keep_changing_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "again").symlink_to("src/main.py")

    def failing(path: str) -> str:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "readlink", failing)
    with pytest.raises(PathRefused, match="keep changing"):
        resolve_inside(root, "again")
