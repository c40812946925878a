"""The stop ladder: ends a child step by step, every wait bounded. All children are ended by it."""

import signal
from typing import NamedTuple, Protocol

import anyio


class Ladder(NamedTuple):
    """Seconds that a child may take to end by itself: after its stdin was closed, after SIGINT where it gets one, and
    after SIGTERM. Then it is killed."""

    closed_s: float
    term_s: float
    interrupt_s: float = 0.0
    """0: no SIGINT is sent."""


POLITE = Ladder(1.0, 1.0)
"""For a language server, which may have to save something. With the client's second for `shutdown`, and the waits for
what was killed, it stays under 5 altogether."""

AT_ONCE = Ladder(0.0, 0.3)
"""For a command whose call was cancelled: it had no input anyway, and a person who ends it wants to see it end."""

KILL_S = 1.0
"""How long the kernel may take to end what was killed."""


class Stoppable(Protocol):
    """What the ladder ends: a child and its supervisor."""

    @property
    def ended(self) -> bool: ...

    async def close_input(self) -> None: ...

    async def wait(self) -> object: ...

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal to the child's process group."""

    def kill(self) -> None:
        """Kills the child and all its descendants."""

    def kill_supervisor(self) -> None: ...


async def stop(child: Stoppable, ladder: Ladder) -> None:
    """Ends a child; returns when its supervisor is reaped, and so the whole tree, or after the last wait."""
    with anyio.move_on_after(ladder.closed_s):
        await child.close_input()
        await child.wait()
    for number, seconds in ((signal.SIGINT, ladder.interrupt_s), (signal.SIGTERM, ladder.term_s)):
        if seconds and not child.ended:
            child.send_signal(number)
            await _wait(child, seconds)
    child.kill()
    if not child.ended:
        await _wait(child, KILL_S)
    if not child.ended:
        child.kill_supervisor()  # it is stopped or stuck; the kernel kills the child with it
        await _wait(child, KILL_S)


async def _wait(child: Stoppable, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await child.wait()
