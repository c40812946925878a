"""A path is opened where it says, by whichever means the system has, or not at all: both refuse the same."""

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace

import pytest

from serena_central.core import nofollow
from serena_central.core.nofollow import NEW, Opener, OpenFolder, open_file, open_following, read_following, status_of

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")


@pytest.fixture(params=[pytest.param("openat2", marks=needs_linux), "part by part"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    chosen = nofollow._by_kernel() if request.param == "openat2" else nofollow._by_parts
    if request.param == "openat2":
        try:
            os.close(chosen(b"/", os.O_RDONLY, 0))
        except OSError:
            pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(nofollow, "_strategy", lambda: chosen)
    return request.param


@pytest.fixture
def top(tmp_path: Path) -> Generator[Path]:
    """A root among things that lie outside of it."""
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("inside")
    (root / "src" / "deep" / "b.py").write_text("deep")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.py").write_text("secret")
    links = {
        "out.py": tmp_path / "outside" / "a.py",
        "out": tmp_path / "outside",
        "up": Path(".."),
        "in.py": Path("src/a.py"),
        "in": Path("src"),
        "dangling": Path("nowhere"),
        "loop": Path("loop"),
        "magic": Path("/proc/self/root"),
        "fd": Path("/proc/self/fd"),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's path is short
        listener.bind("socket")
        os.chdir(here)
        yield root


def read(path: Path | str, opener: Opener = open_file) -> bytes:
    descriptor = opener(str(path))
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


def refusal(act: Callable[[], object]) -> int | None:
    """The error number with which something is refused."""
    with pytest.raises(OSError) as refused:
        act()
    return refused.value.errno


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("out.py", errno.ELOOP),
        ("out/a.py", errno.ELOOP),
        ("out/", errno.ELOOP),
        ("out", errno.ELOOP),
        ("up/outside/a.py", errno.ELOOP),
        ("in.py", errno.ELOOP),
        ("in/a.py", errno.ELOOP),
        ("in/deep/b.py", errno.ELOOP),
        ("dangling", errno.ELOOP),
        ("dangling/x", errno.ELOOP),
        ("loop", errno.ELOOP),
        ("loop/x", errno.ELOOP),
        ("magic/etc/passwd", errno.ELOOP),
        ("fd/0", errno.ELOOP),
        ("..", errno.EXDEV),
        ("../outside/a.py", errno.EXDEV),
        ("src/../../outside/a.py", errno.EXDEV),
        ("src/..", errno.EXDEV),
        ("src/a.py/", errno.ENOTDIR),
        ("src/a.py/x", errno.ENOTDIR),
        ("missing", errno.ENOENT),
        ("missing/a.py", errno.ENOENT),
        ("src/" + "n" * 256, errno.ENAMETOOLONG),
        ("n" * 256 + "/a.py", errno.ENAMETOOLONG),
        ("socket", errno.ENXIO),
    ],
)
def test_what_is_no_plain_way_is_refused_with_the_reason(strategy: str, top: Path, path: str, code: int) -> None:
    assert refusal(lambda: read(f"{top}/{path}")) == code


@pytest.mark.parametrize("path", ["src/a.py", "src//a.py", "./src/./a.py", "src/././/a.py"])
def test_plain_paths_are_opened(strategy: str, top: Path, path: str) -> None:
    assert read(f"{top}/{path}") == b"inside"


@pytest.mark.parametrize("path", ["", "src/a.py", "./src/a.py", "../root/src/a.py"])
def test_a_path_that_does_not_begin_at_the_top_is_refused(
    strategy: str, top: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(top)
    assert refusal(lambda: read(path)) == (errno.EXDEV if path else errno.ENOENT)


def test_the_top_itself_and_a_folder_with_a_slash_behind_it_are_opened(strategy: str, top: Path) -> None:
    for path in ("/", f"{top}/", f"{top}/.", f"{top}/src/"):
        with OpenFolder.at(path) as folder:
            assert os.path.samestat(os.fstat(folder.descriptor), Path(path).stat())


def test_a_nul_does_not_cut_a_path_short(strategy: str, top: Path) -> None:
    with pytest.raises(ValueError, match="null"):
        read(f"{top}/src/a.py\0.png")


def test_names_that_are_no_text_and_very_long_ones_are_opened(strategy: str, top: Path) -> None:
    for name in (b"caf\xe9.py", "größe ☃.py".encode(), b"n" * 255, b"..py", b"...", b"a..b"):
        (top / os.fsdecode(name)).write_text("inside")
        assert read(f"{top}/{os.fsdecode(name)}") == b"inside"


def test_a_pipe_does_not_hold_its_reader(strategy: str, top: Path) -> None:
    assert read(top / "pipe") == b""


def test_devices_are_opened_like_files_and_it_is_the_reader_who_refuses(strategy: str, top: Path) -> None:
    assert read("/dev/null") == b""


def test_a_new_file_is_made_with_its_mode_and_never_through_a_link(strategy: str, top: Path) -> None:
    os.close(open_file(f"{top}/src/new", NEW, 0o640))
    assert (top / "src" / "new").stat().st_mode & 0o777 == 0o640
    for taken in ("dangling", "out.py", "src/a.py"):
        with pytest.raises(FileExistsError):
            open_file(f"{top}/{taken}", NEW, 0o600)
    assert refusal(lambda: open_file(f"{top}/out/new", NEW, 0o600)) == errno.ELOOP
    assert not (top / "nowhere").exists()
    assert [path.name for path in (top.parent / "outside").iterdir()] == ["a.py"]


def test_a_root_that_is_reached_through_a_link_is_refused(strategy: str, top: Path) -> None:
    alias = top.parent / "alias"
    alias.symlink_to(top)
    assert refusal(lambda: read(alias / "src" / "a.py")) == errno.ELOOP
    assert read(alias / "src" / "a.py", open_following) == b"inside"


def test_a_root_that_is_made_anew_is_the_new_one(strategy: str, top: Path) -> None:
    assert read(top / "src" / "a.py") == b"inside"
    top.rename(top.parent / "moved")
    (top / "src").mkdir(parents=True)
    (top / "src" / "new.py").write_text("new")
    assert read(top / "src" / "new.py") == b"new"
    with pytest.raises(FileNotFoundError):
        read(top / "src" / "a.py")


def test_a_status_is_that_of_the_link_itself(strategy: str, top: Path) -> None:
    assert status_of(f"{top}/out.py").st_ino == (top / "out.py").lstat().st_ino
    assert status_of("/").st_ino == Path("/").stat().st_ino
    assert refusal(lambda: status_of(f"{top}/out/a.py")) == errno.ELOOP


def test_what_is_done_in_a_held_folder_happens_there_whatever_its_path_leads_to(strategy: str, top: Path) -> None:
    outside = top.parent / "outside"
    with OpenFolder.at(f"{top}/src") as folder:
        assert folder.is_at_its_path()
        (top / "src").rename(top / "aside")
        (top / "src").symlink_to(outside)
        assert not folder.is_at_its_path()
        os.close(folder.open("new", NEW, 0o600))
        folder.link("new", folder, "second")
        folder.rename("second", folder, "third")
        folder.mkdir("made")
        folder.rmdir("made")
        folder.unlink("a.py")
        for name in ("", ".", "..", "deep/b.py", "/etc/passwd"):
            with pytest.raises(OSError, match="not a name"):
                folder.open(name)
    assert sorted(path.name for path in (top / "aside").iterdir()) == ["deep", "new", "third"]
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("a.py", "secret")]


def test_folders_are_made_on_the_way_but_not_through_a_link(strategy: str, top: Path) -> None:
    made: list[str] = []
    with OpenFolder.made(f"{top}/x/y/z", made) as folder:
        assert folder.is_at_its_path()
    assert made == [f"{top}/x", f"{top}/x/y", f"{top}/x/y/z"]
    assert refusal(lambda: OpenFolder.made(f"{top}/out/x", made)) == errno.ELOOP
    assert not (top.parent / "outside" / "x").exists()


@needs_linux
def test_the_kernel_is_asked_a_bounded_number_of_times_while_it_is_disturbed(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def busy(number: int, *_: object) -> int:
        asked.append(number)
        ctypes.set_errno(errno.EAGAIN)
        return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(syscall=busy))
    os.close(nofollow._by_kernel()(os.fsencode(top / "src" / "a.py"), os.O_RDONLY, 0))
    assert len(asked) == nofollow._TRIES


_UNDER_A_FILTER = """
import ctypes, errno, struct, sys
from serena_central.core import nofollow
code = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
rules = b"".join(struct.pack("<HBBI", *rule) for rule in (
    (0x20, 0, 0, 0),                     # the number of the call
    (0x15, 0, 1, 437),                   # openat2?
    (0x06, 0, 0, 0x00050000 | code),     # fails
    (0x06, 0, 0, 0x7FFF0000),            # all else is allowed
))
buffer = ctypes.create_string_buffer(rules)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
program = Program(4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
assert nofollow._strategy() is nofollow._by_parts
nofollow.open_file(sys.argv[2] + "/src/a.py")
try:
    nofollow.open_file(sys.argv[2] + "/out/a.py")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@needs_linux
@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_a_sandbox_that_forbids_the_call_is_no_hindrance(top: Path, code: int) -> None:
    command = [sys.executable, "-c", _UNDER_A_FILTER, str(code), str(top)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "ELOOP\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices in the file system")
def test_files_of_others_are_read_whole_only_where_they_are_files_of_that_size(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("text")
    assert read_following(tmp_path / "link", 5) == b"12345"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    before = len([*Path("/dev/fd").iterdir()])
    for name, code in (("pipe", errno.EINVAL), ("endless", errno.EINVAL), (".", errno.EINVAL), ("none", errno.ENOENT)):
        with pytest.raises(OSError) as refused:
            read_following(tmp_path / name)
        assert refused.value.errno == code
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_following(tmp_path / "text", 4)
    assert len([*Path("/dev/fd").iterdir()]) == before
