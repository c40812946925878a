"""What a call attaches to its own edits: the files that they may change, and work that follows each of them.

The work (hooks that format what was written) runs while the edit still holds its files: nobody else in this server
plans or writes them in between. What it changes in them belongs to the edit. Like the part of a joint edit, it is found
by the context of its task: the way from a tool to its edit does not know of it.
"""

from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from serena_central.core.errors import EditRefused, listed
from serena_central.projects.editing.applied_edit import AppliedEdit

if TYPE_CHECKING:
    from serena_central.projects.editing.edits import Edited

FollowUp = Callable[[AppliedEdit], Awaitable[None]]
Holding = Callable[[Callable[[], Awaitable[None]]], Awaitable["Edited"]]
"""Runs work while the files of an edit are held again, and returns what the work made of them."""


class EditWatch(NamedTuple):
    """`approved`: root-relative paths that edits may change; None for any. `planned` is told of those that a dry run
    would change. `follow_up` runs after each edit, while it holds its files; `later` is called when it does no more,
    and must not wait."""

    root: Path
    approved: frozenset[str] | None = None
    planned: Callable[[Collection[str]], None] | None = None
    follow_up: FollowUp | None = None
    later: Callable[[AppliedEdit, Holding], None] | None = None


_watch: ContextVar[EditWatch | None] = ContextVar("watch", default=None)


@contextmanager
def watching_edits(watch: EditWatch) -> Generator[None]:
    """Attaches `watch` to the edits that this task makes in the root's project."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def edit_watch(root: Path) -> EditWatch | None:
    """What this task has attached to edits in a root."""
    watch = _watch.get()
    return watch if watch is not None and watch.root == root else None


def check_approved(root: Path, files: Collection[str]) -> None:
    """Raises EditRefused for an edit of other files than those that were looked at before."""
    watch = edit_watch(root)
    if watch is None:
        return
    if watch.planned is not None:
        watch.planned(files)
    if watch.approved is not None and not watch.approved.issuperset(files):
        others = listed(sorted(set(files) - watch.approved))
        raise EditRefused(
            f"Nothing was changed: the project changed while hooks ran, and this edit now concerns {others} as well, "
            "which they have not seen. Send the call again."
        )
