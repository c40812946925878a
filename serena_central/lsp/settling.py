"""For servers that know of a file what it was like when they last read it: makes them read files, and says which they
have not read since they changed.

Such a server (clangd) reads a file that is opened, and remembers what it found when the file is closed again. It talks
through the functions that it is given; when an answer is worth asking for again is `client`'s business.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec

from serena_central.core.pacing import paced
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.wire import AnswerUnreadable, ErrorAnswer, Pending

AT_ONCE = 32
"""Files that the server is asked to read at the same time: more use no more CPU, and each costs memory."""

SETTLE_S = 20.0
"""How long the reading of one question's files is waited for."""

Show = Callable[[Sequence[Path]], Awaitable[list[Pending]]]
"""Opens files and asks for something that needs each to be read. Files that can't be read are left out."""


class Settling:
    """What one server has read. Belongs to the event loop's thread."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._read: dict[Path, Stamp] = {}
        """Files that the server was made to read, and what they were like before it did."""
        self._changed: set[Path] = set()
        """Files that it may know as they were before a change."""
        self._lock = anyio.Lock()

    def note(self, changes: Iterable[FileEvent]) -> None:
        """Takes note of what happened on disk."""
        for change in changes:
            self._read.pop(change.path, None)
            if change.kind == "deleted":
                self._changed.discard(change.path)  # places in it are dropped: it can't be read
            else:
                self._changed.add(change.path)

    def forget(self) -> None:
        """What was read must be read again: a file that is part of others has changed."""
        self._read.clear()

    def outdated(self, paths: Iterable[Path]) -> list[Path]:
        """Those that changed, and were not read since."""
        return [path for path in paths if path in self._changed]

    async def read(self, paths: Iterable[Path]) -> int:
        """Returns when the server has read the files as they are now, or the time is up: how many it has not read."""
        stamps: dict[Path, Stamp] = {}
        async for path in paced(list(paths)):  # thousands hold a common name
            if (stamp := _stamp(path)) and self._read.get(path) != stamp:
                stamps[path] = stamp
        waiting = list(stamps)
        if not waiting:
            return 0
        with anyio.move_on_after(SETTLE_S):
            async with self._lock:  # two questions about one name: the second finds the work done
                while waiting:
                    some = [path for path in waiting[:AT_ONCE] if self._read.get(path) != stamps[path]]
                    await self._read_some({path: stamps[path] for path in some})
                    del waiting[:AT_ONCE]
        return len(waiting)

    async def _read_some(self, stamps: dict[Path, Stamp]) -> None:
        for pending in await self._show(list(stamps)):
            with suppress(ErrorAnswer, AnswerUnreadable):
                await pending.answer(msgspec.Raw)
        for path, stamp in stamps.items():
            if _stamp(path) == stamp:
                self._read[path] = stamp
                self._changed.discard(path)


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path.stat())
    except OSError:
        return None
