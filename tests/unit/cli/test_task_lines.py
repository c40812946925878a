"""What the command line says of a task's work."""

from serena_central.cli.task import worktree_lines


def test_a_worktree_of_an_older_record_is_told_without_its_place() -> None:
    """Where it could not be ended, its place was not recorded."""
    assert list(worktree_lines({"worktree": {"kept": True, "note": "git failed"}})) == [("note", "git failed")]
    assert list(worktree_lines({"worktree": {"kept": True, "path": "/w", "branch": "b", "note": ""}})) == [
        ("worktree", "its work is in /w, on the branch b")
    ]
