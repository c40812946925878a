"""Whether the repositories around a root ignore it, as git itself sees it."""

import subprocess
from pathlib import Path

import pytest

from serena_central.files.repository import is_ignored_below


def by_git(top: Path, root: Path) -> bool:
    asked = subprocess.run(["git", "check-ignore", "-q", str(root.relative_to(top))], cwd=top, check=False)
    return asked.returncode == 0


@pytest.mark.parametrize(
    "patterns",
    [
        "a/",
        "a",
        "/a/b",
        "b/",
        "/b",
        "*",
        "*\n!a",
        "*\n!a\n!a/b",
        "a/*",
        "a/**",
        "a/b/c",
        "a/b/*\n!c",
        "**/c",
        "!a\n#a\n",
        "z",
    ],
)
def test_a_root_below_a_repository_is_ignored_as_git_says(tmp_path: Path, patterns: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(patterns)
    root = tmp_path / "a" / "b" / "c"
    root.mkdir(parents=True)
    assert is_ignored_below(tmp_path, root) is by_git(tmp_path, root)


def test_what_a_folder_in_between_ignores_counts_and_what_lies_above_the_folder_does_not(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    root = tmp_path / "a" / "b" / "c"
    root.mkdir(parents=True)
    (tmp_path / "a" / ".gitignore").write_text("b\n")
    assert is_ignored_below(tmp_path, root)
    assert is_ignored_below(tmp_path / "a", root)
    assert not is_ignored_below(tmp_path / "a" / "b", root)


def test_outside_of_all_repositories_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "a").mkdir()
    assert not is_ignored_below(tmp_path, tmp_path / "a")
