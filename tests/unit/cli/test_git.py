"""Asking git what changed, in repositories whose configuration names programs."""

import subprocess
from pathlib import Path

import click
import pytest

from serena_central.cli.git import changed_since
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
    return [str(Path(path).relative_to(box.root)) for path in changed_since(box.root, "HEAD", trusted=trusted)]


def test_no_program_of_an_untrusted_repository_runs_and_the_answer_is_the_same(box: Hostile) -> None:
    expected = ["new.py", "outer.py", "sub/inner.py"]
    assert relative(box, trusted=False) == expected
    assert box.ran == set()
    assert relative(box, trusted=True) == expected
    assert {"fsmonitor", "clean", "sub-monitor"} <= box.ran


def test_an_option_is_no_revision(box: Hostile) -> None:
    with pytest.raises(click.ClickException, match="no revision"):
        changed_since(box.root, "--output=x", trusted=False)
