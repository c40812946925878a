"""The list of child processes on disk, so that the next server can end what this one left when it was killed.

The supervisor leaves nothing behind as long as it lives; this is for the day when it was killed too. A pid alone proves
nothing: a process is ended only when pid, creation time and the owner token in its environment all match.
Everything here reads /proc or the disk: call it in a thread.
"""

import logging
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from serena_central.core.decoding import from_json
from serena_central.processes.tree import below, look_at

logger = logging.getLogger(__name__)

OWNER_VARIABLE = "SERENA_CENTRAL_OWNER"
"""Set in the environment of every child, and so of its descendants, to the token of the server that started it."""

_KILL_WAIT_S = 3.0
"""How long the kernel may take to end what was killed."""


class Child(msgspec.Struct, frozen=True, order=True):
    """`created` is psutil's creation time: Unix time in seconds."""

    pid: int
    created: float


class _Page(msgspec.Struct):
    owner: str
    server: Child | None = None
    """Who wrote it. In a copy of the folder that one may be alive, and its children are its own."""
    children: list[Child] = []


class Ledger:
    """One file, replaced as a whole. Calls must not overlap."""

    def __init__(self, file: Path) -> None:
        self.owner = secrets.token_hex(16)
        self._server = Child(os.getpid(), psutil.Process().create_time())
        self._file = file
        self._written: list[Child] = []
        self._known: dict[tuple[int, float], Child] = {}
        """(pid, `started` of `processes/tree`) → what is written of it."""

    def record(self, pids: Iterable[int]) -> None:
        """Writes down these language servers with their supervisors and descendants; all others are gone."""
        keys = {key for pid in pids for key in _family(pid)}
        self._known = {key: child for key in keys if (child := self._known.get(key) or _child(key[0])) is not None}
        children = sorted(self._known.values())
        if children != self._written:
            self._write(children)

    def sweep(self) -> list[int]:
        """Ends what an earlier server left, and begins a new page. Returns the pids that were killed."""
        doomed = _with_descendants(self._leftovers())
        for process in doomed:
            _kill(process)
        psutil.wait_procs(doomed, timeout=_KILL_WAIT_S)
        self._write([])
        return [process.pid for process in doomed]

    def leftovers(self) -> list[int]:
        """Pids of what an earlier server left and a sweep would end, without their descendants."""
        return [process.pid for process in self._leftovers()]

    def _leftovers(self) -> list[psutil.Process]:
        try:
            return _alive(from_json(self._file.read_bytes(), _Page))
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("The ledger %s can't be read (%s); leftover processes can't be found", self._file, error)
            return []

    def _write(self, children: list[Child]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(_Page(self.owner, self._server, children)))
        fresh.replace(self._file)
        self._written = children


def _family(pid: int) -> list[tuple[int, float]]:
    """The language server, its supervisor, and everything below: pids, and when they started."""
    server = look_at(pid)
    if server is None:
        return []  # it has just ended, or is another user's by now
    # The parent is this very process when there is no supervisor between, and gone when the supervisor was killed.
    top = pid if server.parent in (os.getpid(), 0, 1) else server.parent
    return [(member.pid, member.started) for member in filter(None, map(look_at, [top, *below(top)]))]


def _child(pid: int) -> Child | None:
    try:
        return Child(pid, psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _alive(page: _Page) -> list[psutil.Process]:
    if page.server is not None and _is_running(page.server):
        return []
    found: list[psutil.Process] = []
    for child in page.children:
        try:
            process = psutil.Process(child.pid)
            if process.create_time() == child.created and process.environ().get(OWNER_VARIABLE) == page.owner:
                found.append(process)
        except psutil.Error:
            continue  # gone, or not ours
    return found


def _is_running(server: Child) -> bool:
    try:
        return server.pid != os.getpid() and psutil.Process(server.pid).create_time() == server.created
    except psutil.Error:
        return False


def _with_descendants(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = dict.fromkeys(processes)
    for process in processes:
        try:
            found.update(dict.fromkeys(process.children(recursive=True)))
        except psutil.Error:
            continue
    return list(found)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error as error:
        logger.debug("%s could not be killed: %s", process.pid, error)
