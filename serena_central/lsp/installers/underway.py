"""Installations in progress, in any process: each writes its progress beside its lock.

A lock together with a progress file means that an installation is running: the kernel releases the lock however its
holder ends. The file alone may be left by a crash, and the lock alone is also held to remove a server.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.places import Places
from serena_central.core.words import counted
from serena_central.standalone.lock import is_locked

LOCK = ".lock"

NOTE = ".progress"

WRITTEN_EVERY_S = 1.0
"""Builds print hundreds of lines a second."""


class Underway(msgspec.Struct, frozen=True):
    """An installation: when it began (Unix time), the command that runs, and the newest of its lines of output."""

    server: str
    began: float
    command: str = ""
    line: str = ""
    lines: int = 0

    def text(self, now: float) -> str:
        """`installing gopls for 35 s: $ go install …; 212 lines so far, the newest: golang.org/x/tools/gopls`"""
        said = f"; {counted(self.lines, 'line')} so far, the newest: {self.line}" if self.lines else ""
        doing = f": {self.command}{said}" if self.command else ""
        return f"installing {self.server} for {max(0, now - self.began):.0f} s{doing}"


class Notes:
    """What one installation leaves for others to read; to be given each line that it tells."""

    def __init__(self, server: str, home: Path, tell: Callable[[str], None]) -> None:
        self._file = home / NOTE
        self._tell = tell
        self._state = Underway(server, time.time())
        self._written_at = 0.0
        self._write()

    def __call__(self, line: str) -> None:
        self._tell(line)
        state = self._state
        if line.startswith("$ "):
            self._state = msgspec.structs.replace(state, command=line, line="", lines=0)
        else:
            self._state = msgspec.structs.replace(state, line=line, lines=state.lines + 1)
        if line.startswith("$ ") or time.monotonic() - self._written_at >= WRITTEN_EVERY_S:
            self._write()

    def close(self) -> None:
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _write(self) -> None:
        """As a whole, or not at all: nobody's installation fails of it."""
        self._written_at = time.monotonic()
        fresh = self._file.with_name(f"{NOTE}.new")
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(self._state))
            fresh.replace(self._file)


def underway(places: Places) -> list[Underway]:
    """All installations in progress. Costs some stats and opens per server that was ever installed."""
    homes = sorted(file.parent for file in places.servers.glob(f"*/{LOCK}"))
    return [one for home in homes if (one := underway_of(home.name, places)) is not None]


def underway_of(server: str, places: Places) -> Underway | None:
    """The installation of one server, if there is one."""
    home = places.servers / server
    if not is_locked(home / LOCK):
        return None
    try:
        return from_json((home / NOTE).read_bytes(), Underway)
    except (OSError, msgspec.MsgspecError):
        return None
