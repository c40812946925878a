"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP) of `serve`, from its first line to its last.

No handler here raises an exception: Python runs handlers between any two instructions, also in destructors and in
callbacks of the import system, where an exception is printed and dropped, and the signal with it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from serena_central.standalone.exit_codes import HUNG_UP, INTERRUPTED, TERMINATED

ENDING = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: HUNG_UP}
"""Signal → exit code once the server has stopped."""

SAME_S = 0.5
"""A signal that comes again this soon is the same one: `timeout` sends it to the server and to its process group, and
a program that started the server passes on what the terminal has sent to both."""


class StopSignals:
    """Whatever has no way to stop in order yet, or no more, is ended by the kernel: at once, wherever Python is."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._received_at = 0.0

    def take(self) -> None:
        """From now on a signal ends the process; before, Ctrl-C raised KeyboardInterrupt."""
        for number in _ending():
            signal.signal(number, signal.SIG_DFL)

    def stop_with(self, stop: Callable[[], None]) -> None:
        """From now on the first signal calls `stop`, which must not raise, and a later Ctrl-C ends the process.

        A later SIGTERM does not: programs that repeat it have SIGKILL as their last resort.
        """

        def handle(number: int, _frame: FrameType | None) -> None:
            if self._received is None:
                self._received, self._received_at = number, time.monotonic()
                stop()
            elif number == signal.SIGINT and time.monotonic() - self._received_at > SAME_S:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        for number in _ending():
            signal.signal(number, handle)

    def exit(self) -> None:
        """Ends the program with the exit code of the signal that stopped it, if one did.

        Raises:
            SystemExit
        """
        if self._received is not None:
            sys.exit(ENDING[signal.Signals(self._received)])


def _ending() -> list[signal.Signals]:
    """Those of `ENDING`; what nohup had us ignore stays ignored."""
    kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in ENDING if not (kept and number == signal.SIGHUP)]
