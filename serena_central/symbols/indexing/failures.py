"""What could not be indexed, and why: files that failed, servers that did not start or make callers wait, files that
may crash a server.

A failure is remembered for a while, so that callers don't wait for the same one repeatedly; a change of the file ends
it. It knows no index and no server.
"""

import time
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from serena_central.symbols.indexing.policy import IndexingPolicy


class _Failure(NamedTuple):
    """When (monotonic), and why; None where the file is not to blame, but the state of its server, which is looked at
    when the reason is told. `final`: not by syntax either."""

    at: float
    reason: str | None
    final: bool


class Failures:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, policy: IndexingPolicy) -> None:
        self._policy = policy
        self._files: dict[str, _Failure] = {}
        self._servers: dict[Hashable, float] = {}
        """Servers that did not start the last time, as the source tells them apart, and when (monotonic)."""
        self._slow: set[Hashable] = set()
        """Servers that left a caller without an answer, and have answered nothing since."""
        self._crashes: dict[str, set[object]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def note(self, path: str, reason: str | None, *, final: bool) -> None:
        """A file could not be indexed; `final`: in no way. No `reason`: its server is busy or not there."""
        self._files[path] = _Failure(time.monotonic(), reason, final)

    def __iter__(self) -> Iterator[str]:
        """Files that could not be indexed the last time."""
        return iter(self._files)

    def reason(self, path: str) -> str | None:
        failure = self._files.get(path)
        return failure.reason if failure else None

    def holds(self, path: str) -> bool:
        """Whether its server is not asked about a file for now, since that failed."""
        failure = self._files.get(path)
        return failure is not None and failure.reason is not None and self._holds_still(failure.at)

    def gave_up(self, path: str) -> bool:
        """Whether a file failed in every way, and is left alone for now."""
        failure = self._files.get(path)
        return failure is not None and failure.final and self._holds_still(failure.at)

    def is_final(self, path: str) -> bool:
        """Whether a file failed in every way, however long ago."""
        failure = self._files.get(path)
        return failure is not None and failure.final

    def _holds_still(self, at: float) -> bool:
        """Whether it is too early to try again because somebody asks."""
        return time.monotonic() - at < self._policy.failure_holds_s

    def succeeded(self, path: str) -> None:
        self._files.pop(path, None)
        self._crashes.pop(path, None)

    def refuse(self, server: Hashable) -> None:
        """A server did not start: its next file would meet the same."""
        self._servers[server] = time.monotonic()

    def refuses(self, server: Hashable) -> bool:
        """Whether a server is not asked to start again for now."""
        at = self._servers.get(server)
        return at is not None and self._holds_still(at)

    def started(self, server: Hashable) -> None:
        self._servers.pop(server, None)

    def all_may_start(self) -> None:
        self._servers.clear()

    def slow(self, server: Hashable) -> None:
        """Records that a caller did not get a server's first answer in time, so that others don't wait for it."""
        self._slow.add(server)

    def is_slow(self, server: Hashable) -> bool:
        return server in self._slow

    def answered(self, server: Hashable) -> None:
        self._slow.discard(server)

    def suspect(self, paths: Iterable[str], server: object) -> list[str]:
        """One of these may have crashed its server; those that were there too often by now.

        All callers of a server hear of its end: a server counts once.
        """
        for path in paths:
            self._crashes.setdefault(path, set()).add(server)
        return [path for path in paths if len(self._crashes[path]) >= self._policy.crashes_allowed]
