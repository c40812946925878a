"""Tasks in git worktrees of their own: the diff is in the result, the project untouched, and nothing left behind."""

import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.central import running_central
from tests.support.child import PATIENCE_S, serving_child
from tests.support.tasks import over, scripted, start

pytestmark = pytest.mark.anyio

LIST = {"call": "list_dir", "arguments": {"relative_path": ".", "recursive": False}}


def git(root: Path, *words: str) -> str:
    """Its output; it blocks for some milliseconds."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def recorded(home: Path, task: str) -> bool:
    """Whether the database has a task's worktree."""
    with closing(sqlite3.connect(home / "serena-central.db")) as database:
        found = database.execute("SELECT verified FROM task WHERE id = ?", (task,)).fetchone()
    return found is not None and "worktree" in str(found[0])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / "part").mkdir(parents=True)
    git(root, "init", "-q")
    git(root, "config", "user.email", "a@example.org")
    git(root, "config", "user.name", "A")
    (root / "part" / "shop.py").write_text("def total():\n    return 1\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    hook = root / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ../../hooked\n")
    hook.chmod(0o755)
    return root


async def test_a_task_changes_its_own_worktree_which_is_kept_with_its_diff(tmp_path: Path, repository: Path) -> None:
    steps = [
        {"call": "create_text_file", "arguments": {"relative_path": "new.py", "content": "x = 1\n"}},
        {"run": ["python3", "-c", "open('shop.py', 'a').write('y = 2')"]},
        {"text": "Done."},
    ]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        found = await over(http, (await start(http, "x", repository / "part", isolation="worktree"))["id"])
        assert found["state"] == "done", found
        assert found["project_root"] == str(repository / "part")
        left = found["verified"]["worktree"]
        assert (left["kept"], left["files"]) == (True, ["part/new.py", "part/shop.py"])
        assert "+x = 1" in left["diff"]
        assert "+y = 2" in left["diff"]
        assert found["verified"]["files"] == ["new.py"]
        assert found["verified"]["changed_otherwise"] == ["shop.py"]
    assert git(repository, "status", "--porcelain") == ""
    assert (Path(left["path"]) / "part" / "new.py").read_text() == "x = 1\n"
    assert left["branch"] in git(repository, "branch", "--list", "serena/*")
    assert not list(tmp_path.rglob("hooked"))
    patch = tmp_path / "patch"
    patch.write_text(left["diff"])
    git(repository, "apply", str(patch))
    assert (repository / "part" / "shop.py").read_text().endswith("y = 2")


async def test_a_worktree_without_changes_is_removed(tmp_path: Path, repository: Path) -> None:
    settings = scripted(tmp_path, {"": [LIST, {"text": "${last}"}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await over(http, (await start(http, "x", repository, isolation="worktree"))["id"])
        assert "part" in found["text"], found
        assert found["verified"]["worktree"]["kept"] is False
        assert not Path(found["verified"]["worktree"]["path"]).exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--list", "serena/*") == ""


async def test_what_a_task_committed_is_kept_whatever_it_checked_out_afterwards(
    tmp_path: Path, repository: Path
) -> None:
    commit = "touch new && git add new && git commit -qm work && git checkout -q --detach HEAD~1"
    settings = scripted(tmp_path, {"": [{"run": ["sh", "-c", commit]}, {"text": "Done."}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await over(http, (await start(http, "x", repository, isolation="worktree"))["id"])
        left = found["verified"]["worktree"]
        assert left["kept"] is True
    assert git(repository, "log", "-1", "--format=%s", left["branch"]).strip() == "work"


async def test_a_worktree_without_its_git_file_is_not_taken_for_a_part_of_the_repository_around_it(
    tmp_path: Path, repository: Path
) -> None:
    """The server's home may lie in a repository, such as one of the user's own settings."""
    git(tmp_path, "init", "-q")
    settings = scripted(tmp_path, {"": [{"run": ["rm", ".git"]}, {"text": "Done."}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await over(http, (await start(http, "x", repository, isolation="worktree"))["id"])
        left = found["verified"]["worktree"]
        assert (left["kept"], "not a git repository" in left["note"]) == (True, True)
        assert Path(left["path"]).is_dir()
    assert git(tmp_path, "ls-files") == ""


ENDS = pytest.mark.parametrize(
    ("number", "state"), [(signal.SIGKILL, "failed"), (signal.SIGTERM, "cancelled")], ids=["killed", "stopped"]
)


@ENDS
async def test_where_the_work_is_of_a_task_whose_server_ended_is_known(
    tmp_path: Path, repository: Path, number: int, state: str
) -> None:
    steps = [{"run": ["sh", "-c", "touch new"]}, {"text": "half"}, {"wait_s": 600}]
    more = {
        f"SERENA_CENTRAL_{key.upper().replace('.', '_')}": str(value)
        for key, value in scripted(tmp_path, {"": steps}).items()
    }
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        task = (await start(http, "x", repository, isolation="worktree"))["id"]
        with anyio.fail_after(PATIENCE_S):
            while not list(tmp_path.rglob("new")) or not recorded(tmp_path / "home", task):
                await anyio.sleep(0.01)
        await child.end(number)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        found = (await http.get(f"/api/v1/tasks/{task}")).json()
        assert found["state"] == state
        left = found["verified"]["worktree"]
        assert (Path(left["path"]) / "new").exists()
        assert (left["kept"], left["files"]) == (True, ["new"])


@ENDS
async def test_a_worktree_without_changes_is_removed_although_its_server_ended(
    tmp_path: Path, repository: Path, number: int, state: str
) -> None:
    """It stayed for ever, and was said to have the task's work."""
    more = {
        f"SERENA_CENTRAL_{key.upper().replace('.', '_')}": str(value)
        for key, value in scripted(tmp_path, {"": [{"wait_s": 600}]}).items()
    }
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        task = (await start(http, "x", repository, isolation="worktree"))["id"]
        with anyio.fail_after(PATIENCE_S):
            while not recorded(tmp_path / "home", task):
                await anyio.sleep(0.01)
        await child.end(number)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        answers: list[dict[str, Any]] = []

        async def ask() -> None:
            answers.append((await http.get(f"/api/v1/tasks/{task}")).json())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
        for found in answers:
            left = found["verified"]["worktree"]
            assert (found["state"], left["kept"], "note" in left) == (state, False, False)
            assert not Path(left["path"]).exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--list", "serena/*") == ""


async def test_without_a_commit_the_task_fails_and_a_wrong_isolation_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "app"
    root.mkdir()
    git(root, "init", "-q")
    async with running_central(tmp_path, scripted(tmp_path, {"": [{"text": "x"}]})) as running, running.http() as http:
        found = await over(http, (await start(http, "x", root, isolation="worktree"))["id"])
        assert found["state"] == "failed"
        assert "a git repository with a commit" in found["error"]
        body = {"instruction": "x", "project": str(root), "isolation": "moon"}
        assert (await http.post("/api/v1/tasks", json=body)).status_code == 400
