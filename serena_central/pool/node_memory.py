"""What the language servers of other processes on this machine hold, where several share one memory budget: the project
hosts of a node. Each leaves its own in a file, and all choose in the same order who is to go; each stops its own alone.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from serena_central.core.decoding import from_json
from serena_central.pool.budget import Holder

STALE_S = 60.0
"""After how long a file counts no more: each process renews its own with every sweep, and may be stopped or killed."""


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A holder. `idle_s`: for how long it was idle; None where it must not be stopped."""

    name: str
    memory_bytes: int
    idle_s: float | None


class NodeMemory:
    """One process's part in it. Its methods may be called in any thread."""

    def __init__(self, folder: Path, pid: int | None = None) -> None:
        """`folder` is that of the node, for these files alone; `pid`: of this process, if it stands for another one."""
        self._folder = folder
        self._own = folder / f"{pid or os.getpid()}.json"

    def exchange(self, own: Iterable[Holder], now: float) -> list[Holder]:
        """Tells the others what this process holds, and returns what they hold; to stop one of theirs does nothing.
        `now` is of the clock by which holders are idle. Blocks for some milliseconds at most. Who holds nothing leaves
        no file: of two hundred processes most are idle, and each reads what all have left."""
        held = [Held(one.name, one.memory_bytes, _idle_s(one, now)) for one in own if one.memory_bytes]
        try:
            if held:
                self._folder.mkdir(parents=True, exist_ok=True)
                fresh = self._own.with_suffix(".new")
                fresh.write_bytes(msgspec.json.encode(held))
                fresh.replace(self._own)
            else:
                self.close()
            return [one for file in self._others() for one in _read(file, now)]
        except OSError:
            return []  # a full disk, say: then each keeps to the budget by itself

    def close(self) -> None:
        """Takes this process's part away."""
        self._own.unlink(missing_ok=True)

    def _others(self) -> list[Path]:
        found: list[Path] = []
        for file in self._folder.glob("*.json"):
            if file == self._own:
                continue
            try:
                old = time.time() - file.stat().st_mtime > STALE_S
                if old or not psutil.pid_exists(int(file.stem)):
                    file.unlink(missing_ok=True)
                else:
                    found.append(file)
            except (OSError, ValueError, OverflowError):  # not one of ours
                continue
        return found


def _idle_s(one: Holder, now: float) -> float | None:
    return None if one.idle_since is None else now - one.idle_since


def _read(file: Path, now: float) -> list[Holder]:
    try:
        said_s_ago = max(time.time() - file.stat().st_mtime, 0.0)
        held = from_json(file.read_bytes(), list[Held])
    except (OSError, msgspec.DecodeError):
        return []
    return [
        Holder(one.name, one.memory_bytes, None if one.idle_s is None else now - said_s_ago - one.idle_s, _leave)
        for one in held
    ]


def _leave(_why: str) -> None:
    """It is another process's, which does the same sum."""
