"""State between runs of a hook: recently stopped searches, and the number of searches of each session.

One small JSON file in the server's folder, changed under a lock and replaced whole.
"""

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from serena_central.standalone.home import Home
from serena_central.standalone.lock import locked

A_MOMENT_S = 180.0
FORGOTTEN_S = 86400.0
KINDS = ("stopped", "searches")
MOST_KEPT = 300
"""Entries of a kind."""

LOCK_WAIT_S = 0.02


class Unavailable(Exception):
    """Another hook holds the file, or it can't be written."""


def digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class Entry(NamedTuple):
    """When something happened last (Unix seconds), and how often."""

    at: float
    times: int


class Memory:
    """The file. Safe for many processes at once. Everything may raise Unavailable."""

    def __init__(self, home: Home) -> None:
        self._file = os.path.join(home.folder, "hooks.json")

    def was_stopped(self, key: str, now: float) -> bool:
        """Whether this search was stopped a moment ago; if not, it is from now on."""
        with self._changing("stopped", now) as stopped:
            before = stopped.get(key)
            if before is not None and now - before.at < A_MOMENT_S:
                return True  # and stays so: a client may run the same hook from two of its files
            stopped[key] = Entry(now, 1)
            return False

    def count(self, session: str, now: float) -> int:
        """The number of searches for code that a session made, this one included."""
        with self._changing("searches", now) as searches:
            before = searches.pop(session, Entry(now, 0))
            searches[session] = Entry(now, before.times + 1)
            return before.times + 1

    def forget(self, session: str, now: float) -> None:
        """Of a session that has ended."""
        with self._changing("searches", now) as searches:
            searches.pop(session, None)

    @contextmanager
    def _changing(self, kind: str, now: float) -> Generator[dict[str, Entry]]:
        try:
            with locked(f"{self._file}.lock", LOCK_WAIT_S):
                said = self._read()
                entries = _young(said.get(kind), now)
                yield entries
                newest = sorted(entries.items(), key=lambda item: item[1].at)[-MOST_KEPT:]
                self._write({**said, kind: dict(newest)})
        except OSError as error:
            raise Unavailable(str(error)) from error

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._file, encoding="utf-8") as file:
                said: Any = json.load(file)
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", said) if isinstance(said, dict) else {}

    def _write(self, said: dict[str, Any]) -> None:
        draft = f"{self._file}.{os.getpid()}"
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            json.dump({kind: said[kind] for kind in KINDS if kind in said}, file)
        os.replace(draft, self._file)


def _young(entries: Any, now: float) -> dict[str, Entry]:
    """What is not too old, nor from the future, of what the file holds."""
    kept: dict[str, Entry] = {}
    for key, value in cast("dict[str, Any]", entries if isinstance(entries, dict) else {}).items():
        match value:
            case [int() | float() as at, int() as times] if 0 <= now - at < FORGOTTEN_S:
                kept[key] = Entry(at, times)
            case _:
                pass
    return kept


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
