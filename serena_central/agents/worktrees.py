"""Git worktrees for tasks: a checkout of the project's last commit in a folder of the server, on a branch of its own.

What a task changed there is its diff. A worktree without changes is removed; one with changes is kept with its branch,
for whoever merges it. Git runs no hooks. All of it blocks.
"""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import TaskRefused

GIT_S = 120
MAX_DIFF = 200_000
"""Characters of a diff in a task's result; the whole one is in the worktree."""

QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Worktree(NamedTuple):
    """`top` is the checkout, `root` the task's folder in it, `base` the commit that it began with."""

    repository: Path
    top: Path
    root: Path
    base: str
    branch: str


class Changes(NamedTuple):
    """What a task left. `cut`: the diff is not whole; `files` are relative to the checkout."""

    diff: str
    cut: bool
    files: list[str]
    kept: bool


def make_worktree(root: Path, folder: Path, task: str) -> Worktree:
    """A worktree of the repository around a root.

    Raises:
        TaskRefused: there is no repository, or no commit.
    """
    try:
        repository = Path(_git(root, "rev-parse", "--show-toplevel").strip())
        base = _git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except TaskRefused as error:
        raise TaskRefused(f"isolation: worktree needs a git repository with a commit at {root}: {error}") from error
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    top, branch = folder / task, f"serena/{task}"
    _git(repository, "worktree", "add", "--quiet", "-b", branch, str(top), base)
    inside = top / root.resolve().relative_to(repository.resolve())
    if not inside.is_dir():
        _remove(Worktree(repository, top, inside, base, branch))
        raise TaskRefused(f"isolation: worktree: {root} is in no commit of {repository}.")
    return Worktree(repository, top, inside.resolve(), base, branch)


def left_worktree(top: Path, branch: str, base: str) -> Worktree:
    """One that an earlier run of the server made, as its record has it.

    Raises:
        TaskRefused: it is not there any more.
    """
    if not top.is_dir():
        raise TaskRefused(f"The worktree {top} is not there any more.")
    found = _git(top, "rev-parse", "--path-format=absolute", "--git-common-dir", ceiling=top.parent)
    return Worktree(Path(found.strip()), top, top, base, branch)


def end_worktree(tree: Worktree) -> Changes:
    """What was changed since its base, committed or not; removes the worktree if that is nothing.

    Raises:
        TaskRefused: git failed; the worktree is left as it is.
    """
    # Files that are new become known to its index, so that the diff has them.
    _git_in(tree, "add", "--all", "--intent-to-add")
    files = [name for name in _git_in(tree, "diff", "--name-only", "-z", tree.base).split("\0") if name]
    # Who has committed may have checked out something else since: what is on the branch counts as well.
    tips = _git_in(tree, "rev-parse", "HEAD", f"refs/heads/{tree.branch}").split()
    if not files and set(tips) == {tree.base}:
        _remove(tree)
        return Changes("", False, [], False)
    diff = _git_in(tree, "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", tree.base)
    return Changes(diff[:MAX_DIFF], len(diff) > MAX_DIFF, files, True)


def _remove(tree: Worktree) -> None:
    _git(tree.repository, "worktree", "remove", "--force", str(tree.top))
    _git(tree.repository, "branch", "--quiet", "-D", tree.branch)


def _git_in(tree: Worktree, *arguments: str) -> str:
    """In a checkout, and in no repository around it where its own `.git` is gone."""
    return _git(tree.top, *arguments, ceiling=tree.top.parent)


def _git(folder: Path, *arguments: str, ceiling: Path | None = None) -> str:
    bounds = {} if ceiling is None else {"GIT_CEILING_DIRECTORIES": str(ceiling)}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *QUIET, *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            timeout=GIT_S,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **bounds},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TaskRefused(f"git can't be run: {error}") from error
    if done.returncode:
        raise TaskRefused(f"git failed: {done.stderr.decode('utf-8', 'replace').strip()[:1000]}")
    return done.stdout.decode("utf-8", "replace")
