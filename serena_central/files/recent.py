"""A cache of texts that were just read: one call reads the same files for several answers, and the next call again.

A file is opened and its stamp compared each time, so that nothing is older than the call; only reading, decoding and
finding its lines are saved. A file that changed so recently that its mtime may not show a further change is read again.
"""

import os
import threading
import time
from pathlib import Path

from serena_central.core.lru import Lru
from serena_central.core.nofollow import Opener, open_file
from serena_central.files.stamp import RACY_NS, Stamp
from serena_central.files.text import FileText, read_text

MOST_CHARS = 4_000_000
"""Of all texts together: some 10 MB with their lines. The files that hold one name of Django have 2 MB, and are read
for several answers in turn: with less room each of these would read all of them again."""


class RecentTexts:
    """May be used in any thread."""

    def __init__(self) -> None:
        self._texts: Lru[tuple[str, str | None], FileText] = Lru(max_size=MOST_CHARS, size_of=_chars)
        self._lock = threading.Lock()

    def read(self, path: Path, *, encoding: str | None = None, opener: Opener = open_file) -> FileText:
        """As `read_text`, and raises what that raises."""
        key = str(path), encoding
        with self._lock:
            known = self._texts.get(key)
        if known is not None and _stamp_of(key[0], opener) == known.stamp:
            return known
        read = read_text(path, encoding=encoding, opener=opener)
        with self._lock:
            if time.time_ns() - max(read.stamp.mtime_ns, read.stamp.ctime_ns) > RACY_NS:
                self._texts[key] = read
            else:
                self._texts.discard(key)
        return read


def _chars(read: FileText) -> int:
    return max(1, len(read.text.content))


def _stamp_of(path: str, opener: Opener) -> Stamp | None:
    """Of the file as it is when it is opened: only that asks the server of a network's file system."""
    try:
        descriptor = opener(path)
    except OSError:
        return None
    try:
        return Stamp.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)
