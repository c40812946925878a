"""Removes words that only closed files contain from prose that a language server returns.

Servers read all files of a project, and quote them: a diagnostic names the value of a constant, a hover the parameters
and the documentation of what a class inherits. Rules that close a file hold for those as well.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath

import anyio.to_thread

from serena_central.core.errors import PathError
from serena_central.files.text import decode, read_bytes

GAP = "…"
"""In place of a word that only closed files hold."""

WITHHELD = "withheld: it may quote files that permission rules close"
"""In place of a text, where there is too much in closed files to compare it with."""

MOST_FILES = 2_000
MOST_BYTES = 32 * 1024 * 1024
"""Of closed code; a text takes some 0.2 s then."""

_WORD = re.compile(r"\w+")

_SHORT_NUMBER = re.compile(r"\d{1,2}")

_MESSAGES = """
a all already also an and any are argument arguments as assign assignable assigned async at attribute await base be bool
boolean bound but by bytes call callable called can cannot char class const constant constructor could declaration
declared def default defined definition deprecated dict does double else enum error errors existing expected export
expression extends false field final float for found from func function given got has have help here i if implement
implementation implements import in incompatible incorrect incorrectly info inherited instance int integer interface
invalid is it its keyword let list literal match matches may method methods missing module more must name namespace
never new no none not note null number object of on one only operator or other overload overridden override package
parameter parameters positional possible private property protected protocol public read required return returned
returns self set should signature static str string struct such super symbol that the this to too trait true tuple type
types undefined unknown unresolved unused use used value values var variable void want warning was which with without
you
"""
_COMMON = frozenset(_MESSAGES.split())
"""Words of the messages themselves: no file is quoted by one of them."""


class ClosedText:
    """Safe from any task; what it reads, it reads in a thread."""

    def __init__(
        self,
        root: Path,
        *,
        hidden: Callable[[], Collection[str]],
        is_code: Callable[[str], bool],
    ) -> None:
        """`hidden` gives the files and folders below the root that are closed; `is_code`: whether some language server
        may read a root-relative file."""
        self._root = root
        self._hidden = hidden
        self._is_code = is_code
        self._known: tuple[object, frozenset[str] | None] = None, frozenset()

    async def without(self, path: str, text: str) -> str:
        """A text that a server said about an open file, without what only closed ones hold. Costs nothing as long as
        no code is closed."""
        hidden = self._hidden()
        if not hidden:
            return text
        return await anyio.to_thread.run_sync(self._without, path, text, hidden)

    async def holding(self, names: Collection[str]) -> Collection[str]:
        """Those of some names that closed code may hold as words; all of them where there is too much of it."""
        hidden = self._hidden()
        if not hidden:
            return ()
        closed = await anyio.to_thread.run_sync(self._words, hidden)
        return names if closed is None else closed.intersection(names)

    def _without(self, path: str, text: str, hidden: Collection[str]) -> str:
        closed = self._words(hidden)
        if closed is None:
            return WITHHELD
        secret = {
            word
            for word in closed & set(_WORD.findall(text))
            if word.lower() not in _COMMON and not _SHORT_NUMBER.fullmatch(word)
        }
        if secret:
            secret -= _words_of(self._root / path)
        if not secret:
            return text
        return _WORD.sub(lambda found: GAP if found[0] in secret else found[0], text)

    def _words(self, hidden: Collection[str]) -> frozenset[str] | None:
        """All words of closed code; None where that is too much."""
        files: dict[str, tuple[int, int, int]] = {}
        size = 0
        for file, status in self._files(hidden):
            files[file] = status.st_mtime_ns, status.st_size, status.st_ino
            size += status.st_size
            if len(files) > MOST_FILES or size > MOST_BYTES:
                return None
        stamps = frozenset(files.items())
        if self._known[0] != stamps:
            names = {word for file in files for word in _WORD.findall(PurePosixPath(file).stem)}
            self._known = stamps, frozenset(names.union(*(_words_of(self._root / file) for file in files)))
        return self._known[1]

    def _files(self, hidden: Collection[str]) -> Iterator[tuple[str, os.stat_result]]:
        """The closed files that are code, at any depth of closed folders."""
        pending = list(hidden)
        while pending:
            path = pending.pop()
            try:
                status = (self._root / path).lstat()
                if stat.S_ISDIR(status.st_mode):
                    pending += (f"{path}/{name}" for name in os.listdir(self._root / path))  # noqa: PTH208 - names alone
                elif stat.S_ISREG(status.st_mode) and self._is_code(path):
                    yield path, status
            except OSError:
                continue  # gone since, or nobody may read it


def _words_of(file: Path) -> set[str]:
    try:
        return set(_WORD.findall(decode(read_bytes(file)[0], file).content))
    except PathError:
        return set()
