"""Asking git what changed, in repositories whose configuration names programs."""

import subprocess
from pathlib import Path

import pytest

from serena_central.core.errors import InvalidArguments
from serena_central.files.revisions import changed_since, texts_before
from tests.support.hostile import Hostile

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-c", "core.fsmonitor=false")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *WHO, *arguments], check=True, capture_output=True)


@pytest.fixture
def box(tmp_path: Path) -> Hostile:
    """A monitor, a hook and a filter, in the repository and in its submodule."""
    origin = tmp_path / "origin"
    subprocess.run(["git", "init", "-q", str(origin)], check=True)
    (origin / "inner.py").write_text("a = 1\n")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "inner")
    box = Hostile(tmp_path)
    box.write("outer.py", "a = 1\n")
    box.write(".gitattributes", "*.py filter=evil\n")
    git(box.root, "submodule", "--quiet", "add", str(origin), "sub")
    git(box.root, "add", ".")
    git(box.root, "commit", "-qm", "outer")
    box.program(".git/clean", then="cat")
    git(box.root, "config", "filter.evil.clean", str(box.root / ".git/clean"))
    box.program(".git/hooks/post-index-change")
    monitor = box.program(".git/sub-monitor")
    git(box.root / "sub", "config", "core.fsmonitor", str(monitor))
    box.write("outer.py", "b = 2\n")
    box.write("sub/inner.py", "b = 2\n")
    box.write("new.py", "b = 2\n")
    return box


def relative(box: Hostile, *, trusted: bool) -> list[str]:
    return [str(Path(one.absolute).relative_to(box.root)) for one in changed_since(box.root, "HEAD", trusted=trusted)]


def test_no_program_of_an_untrusted_repository_runs_and_the_answer_is_the_same(box: Hostile) -> None:
    expected = ["new.py", "outer.py", "sub/inner.py"]
    assert relative(box, trusted=False) == expected
    assert box.ran == set()
    assert relative(box, trusted=True) == expected
    assert {"fsmonitor", "clean", "sub-monitor"} <= box.ran


@pytest.mark.parametrize(
    "revision",
    [
        "--output=x",
        "-h",
        "",
        "a\0b",
        "HEAD\n",
        "\ud800",
        "HEAD..HEAD",
        "HEAD...HEAD",
        "HEAD:sub",
        "^HEAD",
        "HEAD^@",
        "none",
        "x" * 1_000_000,
    ],
)
def test_what_names_no_single_commit_is_refused(box: Hostile, revision: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        changed_since(box.root, revision, trusted=False)
    assert len(str(refused.value)) < 1500
    assert box.ran == set()


@pytest.mark.parametrize("trusted", [False, True])
def test_a_renamed_file_is_gone_and_new(tmp_path: Path, *, trusted: bool) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.py").write_text("def hello(): ...\n" * 10)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "a")
    git(tmp_path, "mv", "a.py", "c.py")
    changed = changed_since(tmp_path, "HEAD", trusted=trusted)
    assert [one.path for one in changed] == ["a.py", "c.py"]
    assert list(texts_before(changed)) == [str(tmp_path / "a.py")]


def test_what_files_held_in_a_revision_is_told_of_submodules_too_and_no_program_runs(box: Hostile) -> None:
    changed = changed_since(box.root, "HEAD", trusted=False)
    before = {Path(path).name: text for path, text in texts_before(changed).items()}
    assert before == {"outer.py": "a = 1\n", "inner.py": "a = 1\n"}
    assert box.ran == set()
