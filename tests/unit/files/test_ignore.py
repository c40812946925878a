"""The ignore rules say what git says, over tricky patterns and random ones; and what holds where there is no git."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serena_central.files.repository import OuterRules
from serena_central.files.walk import TreeScan

PATHS = [
    "a",
    "a.py",
    "a b",
    "trailing ",
    "b.pyc",
    "#hash",
    "!bang",
    "back\\slash",
    "[x]",
    "x",
    "ünï.py",
    "foo/a.py",
    "foo/bar/a.py",
    "foo/bar/baz/deep.txt",
    "foo/b.pyc",
    "bar/foo",
    "bar/x/foo/a",
    "build/out.o",
    "src/build",
    "src/build2/keep.me",
    "src/lib/x-1.so",
    "src/lib/x-22.so",
    "src/Lib/Y",
    "-/]",
    "-/^",
]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the files of PATHS, for a user without any configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "repository"
    for path in PATHS:
        write(root / path, "")
    git(root, "init", "-q")
    return root


def write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode())


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return os.fsdecode(done.stdout)


def by_git(root: Path) -> set[str]:
    listed = git(root, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    return {path for path in listed if path and not path.endswith("/")}


def by_us(root: Path, *, ignored_paths: Iterable[str] = (), use_git: bool = True) -> set[str]:
    outer = OuterRules(root, ignored_paths=list(ignored_paths), use_git=use_git)
    scan = TreeScan(root, outer, use_git=use_git)
    scan.look_everywhere(outer)
    return set(scan.take())


@pytest.mark.parametrize(
    "patterns",
    [
        "*.py",
        "/a.py",
        "foo",
        "foo/",
        "foo/*\n!foo/bar",
        "foo/**\n!foo/bar/\n!foo/bar/**",
        "**/foo",
        "foo/**/a.py",
        "**/bar/**",
        "**",
        "foo/**/bar/**/deep.*\n**/src/**/l*b/**\n!src/**/x-1*",
        "/**/**/bar/**/\nsrc/**/**/*.so",
        "*\n!*/\n!*.py",
        "foo/bar\n!foo/bar/a.py",
        "\\#hash\n\\!bang",
        "#hash\n!bang",
        "trailing \\ \ntrailing\\ ",
        "a b   ",
        "back\\\\slash\nx\\",
        "[x]\n\\[x\\]",
        "[!a-w]",
        "[]^-]",
        "[z-a]\n[",
        "x-[[:digit:]].so\nx-[[:nonsense:]].so",
        "build\n!src/build",
        "build/",
        "/",
        "!",
        "//a",
        "***\n!x",
        "a**.py\nfoo/b**c",
        "*.p?\n?",
        "\ufefffoo",
        "foo\r\nbar/\r\n",
        "ün*",
        "src/*/x-*-*.so\nsrc/l*b/x*2*2.s*o",
    ],
)
def test_tricky_patterns_mean_what_they_mean_to_git(repository: Path, patterns: str) -> None:
    write(repository / ".gitignore", patterns)
    assert by_us(repository) == by_git(repository)


GLOBS = st.text(alphabet=st.sampled_from("ab.*?/!\\ []-^xfo"), min_size=1, max_size=8).filter(
    lambda glob: "/" not in glob[glob.find("[") :] if "[" in glob else True
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(GLOBS, max_size=5), st.lists(GLOBS, max_size=3), st.lists(GLOBS, max_size=2))
def test_random_patterns_mean_what_they_mean_to_git(
    repository: Path, top: list[str], nested: list[str], excluded: list[str]
) -> None:
    write(repository / ".gitignore", "\n".join(top))
    write(repository / "foo" / ".gitignore", "\n".join(nested))
    write(repository / ".git" / "info" / "exclude", "\n".join(excluded))
    assert by_us(repository) == by_git(repository)


def test_nested_ignore_files_excludes_and_the_users_file_have_gits_precedence(repository: Path) -> None:
    write(repository / ".gitignore", "*.txt\n!*.pyc\n")
    write(repository / "foo" / ".gitignore", "!deep.txt\n*.py\n")
    write(repository / ".git" / "info" / "exclude", "x\n!a\n*.pyc\n")
    write(repository.parent / ".config" / "git" / "ignore", "a\n*.so\n")
    assert by_us(repository) == by_git(repository)
    assert {"foo/bar/baz/deep.txt", "b.pyc", "a"} < by_us(repository)
    write(repository.parent / ".gitconfig", "[user]\n\tname = x\n[core]\n\texcludesFile = ~/mine  \n")
    write(repository.parent / "mine", "*.me\n")
    assert by_us(repository) == by_git(repository)
    assert "src/lib/x-1.so" in by_us(repository)


def test_a_root_below_its_repositorys_top_obeys_the_files_above(repository: Path) -> None:
    write(repository / ".gitignore", "/src/lib/*.so\nbuild\n/x\n")
    write(repository / "src" / ".gitignore", "lib/Y\n!lib/x-1.so\nLib/Y")
    for below in ("src", "src/lib", "foo/bar"):
        assert by_us(repository / below) == by_git(repository / below)


def test_a_root_that_its_repository_ignores_is_taken_as_one_without(repository: Path) -> None:
    write(repository / ".gitignore", "foo/\n*.py\n")
    assert by_us(repository / "foo" / "bar") == {"a.py", "baz/deep.txt"}


def test_nested_repositories_worktrees_and_symlinks_are_left_out(repository: Path) -> None:
    git(repository, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "-q", "tree")
    write(repository / "tree" / "in-worktree", "")
    write(repository / "module" / ".git", "gitdir: elsewhere\n")
    write(repository / "module" / "in-module", "")
    (repository / "link").symlink_to("a.py")
    (repository / "folder-link").symlink_to("foo")
    assert by_us(repository) == set(PATHS)
    write(repository / ".git" / "info" / "exclude", "in-w*\n")
    write(repository / "tree" / "other", "")
    assert by_us(repository / "tree") == {"other"}, "a worktree shares the excludes of its repository"


def test_without_a_repository_the_usual_folders_and_ignore_files_count(tmp_path: Path) -> None:
    for path in ("a.py", "node_modules/x.js", "b/__pycache__/a.pyc", ".venv/x", "b/c.log", "target/x", ".hg/x"):
        write(tmp_path / path, "")
    write(tmp_path / "b" / ".gitignore", "*.log\n")
    assert by_us(tmp_path) == {"a.py", "target/x", "b/.gitignore"}
    assert by_us(tmp_path, use_git=False) == {"a.py", "target/x", "b/.gitignore", "b/c.log"}


def test_the_projects_own_patterns_are_the_strongest(repository: Path) -> None:
    write(repository / ".gitignore", "*.so\n")
    found = by_us(repository, ignored_paths=["foo/", "/src/build2", "!x-1.so"])
    assert "src/lib/x-1.so" in found
    assert not {path for path in found if path.startswith(("foo/", "src/build2")) or path == "src/lib/x-22.so"}


def test_many_stars_do_not_take_for_ever(tmp_path: Path) -> None:
    write(tmp_path / ("a" * 250), "")
    write(tmp_path / ".gitignore", "*a" * 40 + "b\n")
    assert "a" * 250 in by_us(tmp_path)


def test_many_double_stars_do_not_take_for_ever(tmp_path: Path) -> None:
    deep = "/".join("a" * 80)
    write(tmp_path / deep / "b", "")
    write(tmp_path / ".gitignore", "**/a/" * 20 + "x\n" + "**/" * 200 + "y\n")
    assert f"{deep}/b" in by_us(tmp_path)


def test_names_that_no_answer_could_carry_are_left_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.py")).write_text("")
    write(tmp_path / "é.py", "")
    assert by_us(tmp_path) == {"é.py"}


@pytest.mark.parametrize(
    ("patterns", "line"),
    [
        ("*.o\n\n# all of it\n/*\n", ("line 4 of {root}/.gitignore, '/*'", 0)),
        ("*\n!.gitignore\n", ("line 1 of {root}/.gitignore, '*'", 0)),
        ("/*\n!/src/\n", ("line 1 of {root}/.gitignore, '/*'", 1)),
        ("lib/\n/*\n!/src/\n!/lib/\n", ("line 2 of {root}/.gitignore, '/*'", 2)),
        ("src/\nlib/\n", None),
        ("*.py\n", None),
    ],
)
def test_the_line_that_ignores_everything_is_told(
    repository: Path, patterns: str, line: tuple[str, int] | None
) -> None:
    write(repository / "src" / "a.py", "")
    write(repository / "lib" / "a.py", "")
    write(repository / ".gitignore", patterns)
    scan = TreeScan(repository, OuterRules(repository), use_git=True)
    scan.look("")
    found = scan.ignores_everything()
    assert (found and (found.line, found.kept)) == (line and (line[0].format(root=repository), line[1]))
    scan.look_everywhere(OuterRules(repository, ignored_paths=["!/*"]))
    assert scan.ignores_everything() is None
    assert "src/" in scan.folders


def test_nothing_is_said_of_an_empty_root_that_ignores_everything(tmp_path: Path) -> None:
    write(tmp_path / ".git" / "HEAD", "")
    write(tmp_path / ".gitignore", "/*\n")
    scan = TreeScan(tmp_path, OuterRules(tmp_path), use_git=True)
    scan.look("")
    assert scan.ignores_everything() is None
