"""The interface of a watch on folders, whatever the system: `inotify` implements it on Linux, `watch` hands it out."""

from typing import NamedTuple, Protocol

from serena_central.files.walk import Folder, FolderWatch


class WatchUnavailable(Exception):
    """Nothing, or nothing more, can be watched; the message is the reason, for a note."""


class Heard(NamedTuple):
    """One event: a name in a known folder. `moved_away`: a folder of this name is no longer there as it was."""

    folder: Folder
    name: str
    is_folder: bool
    moved_away: bool


class Watch(FolderWatch, Protocol):
    """`add` raises WatchUnavailable when nothing more can be watched, OSError when the folder is gone or unreadable."""

    async def heard(self) -> None:
        """Returns when there is something to read, some time after it happened."""
        ...

    def read(self) -> list[Heard] | None:
        """All events before the call, in order; None if some were lost, so that everything must be scanned.
        Never waits."""
        ...

    def is_read(self) -> bool:
        """Whether all events before the call have been read. Never waits."""
        ...

    def close(self) -> None:
        """Takes some microseconds per folder; may be called in any thread."""
        ...


class Queue(Protocol):
    """Where the system puts what happens in the folders of all watches."""

    def fileno(self) -> int:
        """Readable when something happened."""
        ...

    def watch(self) -> Watch: ...

    def hand_out(self) -> None:
        """Gives every watch its share of what happened until now."""
        ...

    def close(self) -> None:
        """Its watches hear nothing from now on."""
        ...
