"""File descriptors of this process: the limit, raised at the start, and whether any are left.

Each connection, watched tree, language server and database takes some. libuv silently closes connections that it has no
descriptor for, so that this is checked here.
"""

import errno
import math
import os
import resource
import time

from serena_central.core.event_kinds import DescriptorsExhausted
from serena_central.core.events import EventBus, Severity

ENOUGH = 65_536
"""What the limit is raised to at most. Children inherit it: programs that close each possible descriptor when they
start need milliseconds for so many, and minutes for the billion that some containers allow."""

REMEDY = "Raise the limit (ulimit -Hn, LimitNOFILE= of a service), or close clients"

REPEATED_S = 60.0
"""An exhaustion that comes again within this time is the same one."""


def limit() -> float:
    """How many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> None:
    """Raises the soft limit to the hard one, or to `ENOUGH`. One that is higher stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_NONE_LEFT = (errno.EMFILE, errno.ENFILE)


class Descriptors:
    """Publishes that there are none left: once for a time of need, however long it lasts."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._exhausted = False
        self.exhausted_at: float | None = None
        """Unix time at which there were none left last."""

    def check(self) -> None:
        """To be called about once a second."""
        if not _exhausted():
            self._exhausted = False
            return
        before, self.exhausted_at = self.exhausted_at, time.time()
        if not self._exhausted and (before is None or self.exhausted_at - before > REPEATED_S):
            message = (
                f"All {limit():.0f} file descriptors are in use; new connections are closed and files can't be opened. "
                f"{REMEDY}."
            )
            self._bus.publish(DescriptorsExhausted(message=message, severity=Severity.ERROR))
        self._exhausted = True


def check_spare(count: int) -> None:
    """For what can't be told that there are too few when it needs them.

    Raises:
        OSError: fewer descriptors than these are left.
    """
    opened: list[int] = []
    try:
        while len(opened) < count:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in _NONE_LEFT:
            raise OSError(error.errno, f"{error.strerror}. {REMEDY}") from error
        raise
    finally:
        for one in opened:
            os.close(one)


def _exhausted() -> bool:
    try:
        check_spare(1)
    except OSError as error:
        return error.errno in _NONE_LEFT
    return False
