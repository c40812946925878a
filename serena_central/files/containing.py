"""Files that hold a word: candidates for somebody who looks closer.

The disk is read as it is now, in threads. Which files are asked is the caller's choice.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from serena_central.files.text import encodings_of, in_utf8, read_each

READERS = 4
"""Threads that look for candidates where they wait for the disk, which answers several questions at once: 100,000 files
that were not in memory took 3.8 s (one thread: 10.2; eight: 3.3). Those that are take one thread, beside which others
only compete for the interpreter: 55,000 took 1.6 s, with four threads 2.6."""

READ_AT_ONCE = 500
"""Files that one reader takes …"""

COUNTED_AT_ONCE = 50
"""… and of which it says at once that they are read."""

WAITING = 2.0
"""A reader that takes so many times its CPU time waits for the disk, or for other programs."""


class Containing(NamedTuple):
    """Files that hold a word, and those that could not be read in time, both in the order asked."""

    files: list[str]
    unread: list[str]


async def find_containing(
    root: Path,
    paths: Iterable[str],
    word: str,
    *,
    whole: bool = True,
    encoding: str | None = None,
    most_s: float = math.inf,
) -> Containing:
    """`files_containing`, as far as files can be read in `most_s`; in a thread, in several where it waits for the disk.

    What a disk has not delivered by then is not waited for.
    """
    asked = list(paths)
    looking = _Looking(asked, partial(files_containing, root, word=word, whole=whole, encoding=encoding))
    try:
        with anyio.move_on_after(most_s):
            async with anyio.create_task_group() as tasks:
                await looking.go_on(tasks)
    finally:
        looking.stop()
    seen = set(looking.read)  # a thread that still waits for the disk may add to it
    holding = [path for path in asked if path in seen and path in looking.found]
    return Containing(holding, [path for path in asked if path not in seen] if len(seen) < len(asked) else [])


class _Looking:
    """Looks through files for a word, in threads."""

    def __init__(self, asked: Sequence[str], containing: Callable[[Sequence[str]], list[str]]) -> None:
        self._parts = iter(_slices(asked, READ_AT_ONCE))
        self._containing = containing
        self._readers = 1
        self._stopped = threading.Event()
        self.stop = self._stopped.set
        self.found: set[str] = set()
        self.read: set[str] = set()
        """What is in it is in `found`, too, if it belongs there."""

    async def go_on(self, tasks: TaskGroup) -> None:
        """Until all have been read; with more readers where they wait for the disk."""
        for part in self._parts:
            if await anyio.to_thread.run_sync(self._look, part, abandon_on_cancel=True) and self._readers < READERS:
                self._readers += 1
                tasks.start_soon(self.go_on, tasks)

    def _look(self, part: Sequence[str]) -> bool:
        """Whether it waited for the disk most of the time."""
        began, cpu_before = time.perf_counter(), time.thread_time()
        for some in _slices(part, COUNTED_AT_ONCE):
            if self._stopped.is_set():
                break
            self.found.update(self._containing(some))
            self.read.update(some)
        return time.perf_counter() - began > WAITING * (time.thread_time() - cpu_before)


def _slices(paths: Sequence[str], size: int) -> list[Sequence[str]]:
    return [paths[start : start + size] for start in range(0, len(paths), size)]


def files_containing(
    root: Path,
    paths: Iterable[str],
    word: str,
    *,
    whole: bool = True,
    encoding: str | None = None,
    ignore_case: bool = False,
) -> list[str]:
    """Those of `paths` whose bytes contain `word`; `whole`: as a word, which no ASCII letter, digit or `_` continues.

    Candidates, for somebody who looks closer: rather one too many. Files that can't be read are none. In the calling
    thread.
    """
    each = _containing_each(root, paths, word, whole=whole, encoding=encoding, ignore_case=ignore_case)
    return [path for path, contains in each if contains]


def files_lacking(
    root: Path, paths: Iterable[str], word: str, *, encoding: str | None = None, ignore_case: bool = False
) -> list[str]:
    """Those of `paths` that could be read, and whose bytes contain `word` nowhere. In the calling thread."""
    each = _containing_each(root, paths, word, whole=False, encoding=encoding, ignore_case=ignore_case)
    return [path for path, contains in each if not contains]


def _containing_each(
    root: Path, paths: Iterable[str], word: str, *, whole: bool, encoding: str | None, ignore_case: bool
) -> Iterator[tuple[str, bool]]:
    """Each of `paths` that can be read, and whether it contains `word`."""
    if not word:
        return
    needles = encodings_of(word, encoding)
    contains = _word_finder(needles, whole=whole, ignore_case=ignore_case)
    usual, *others = needles
    for path, read in read_each(root, paths):
        data = in_utf8(read, path)
        if data is None:
            continue
        # Most files hold the word in no form: that is known ten times as quickly as by an expression.
        may_contain = ignore_case or usual in data or (others and any(needle in data for needle in others))
        yield path, bool(may_contain) and contains(data) is not None


def _word_finder(
    needles: Iterable[bytes], *, whole: bool, ignore_case: bool = False
) -> Callable[[bytes], re.Match[bytes] | None]:
    """Searches bytes for one of the forms of a word.

    What precedes the word is checked behind its match: an expression that starts with a literal is ten times quicker.
    """
    expression = b"|".join(_as_word(needle) if whole else re.escape(needle) for needle in needles)
    return re.compile(expression, re.IGNORECASE if ignore_case else 0).search


def _as_word(needle: bytes) -> bytes:
    literal = re.escape(needle)
    not_before = rb"(?<!\w%s)" % literal if needle[:1].isalnum() or needle[:1] == b"_" else b""
    not_behind = rb"(?!\w)" if needle[-1:].isalnum() or needle[-1:] == b"_" else b""
    return literal + not_before + not_behind
