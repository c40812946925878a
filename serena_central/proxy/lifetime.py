"""Decides when the proxy has to exit: on a signal, or when the process that started it dies.

The end of stdin, the third reason, is the proxy's own to see.
"""

import os
import signal
import sys
from collections.abc import Callable

from serena_central.proxy.event_loop import READ, Loop

POLL_S = 0.5
"""Where the parent's death can't be waited for, it is looked for this often."""

ENDING = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


def end_on_signals(loop: Loop, end: Callable[[str], None], child_ended: Callable[[], None]) -> None:
    """Calls `end` on a signal that asks us to go; a second one takes effect at once. Only in the main thread."""
    signal.set_wakeup_fd(loop.wake_descriptor, warn_on_full_buffer=False)
    names: dict[int, str] = {}
    for name in ENDING:
        number = getattr(signal, name, None)
        # What a parent has told us to ignore (nohup) stays ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            names[int(number)] = name
            signal.signal(number, _noticed)
    child = getattr(signal, "SIGCHLD", None)
    if child is not None:
        signal.signal(child, _noticed)

    async def watch() -> None:
        asked = False
        while True:
            await loop.ready(loop.waking.fileno(), READ)
            for number in loop.waking.recv(64):
                if child is not None and number == child:
                    child_ended()
                elif number in names:
                    if asked:
                        os._exit(128 + number)
                    asked = True
                    end(names[number])

    loop.spawn(watch())


def end_on_wake(loop: Loop, end: Callable[[str], None]) -> None:
    """Calls `end` when another thread wakes the loop; for proxies that are not their process's main thing."""

    async def watch() -> None:
        await loop.ready(loop.waking.fileno(), READ)
        end("it was asked to stop")

    loop.spawn(watch())


def _noticed(_number: int, _frame: object) -> None:
    """The descriptor that `set_wakeup_fd` names has the number."""


def end_with_parent(loop: Loop, end: Callable[[str], None], parent: int) -> None:
    """Calls `end` when `parent`, the process that started us, is gone.

    Not by PR_SET_PDEATHSIG: that fires when the parent's *thread* ends, and clients start us from threads of a pool.
    """

    async def watch() -> None:
        descriptor = _pidfd(parent)
        # If it was gone before we looked, somebody else is our parent by now, and its id may be another's.
        while os.getppid() == parent:
            if descriptor is None:
                await loop.sleep(POLL_S)
            else:
                await loop.ready(descriptor, READ)
                break
        end("its parent process exited")

    if sys.platform != "win32":  # there, a child never learns of its parent's end: stdin tells
        loop.spawn(watch())


def _pidfd(pid: int) -> int | None:
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return opener(pid)
    except OSError:  # an old kernel, or a sandbox
        return None
