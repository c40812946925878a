"""Starts `supervisor.py`, whose process has an owner however the start ends."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.lowlevel import checkpoint_if_cancelled

from serena_central.core.descriptors import check_spare

SPARE_DESCRIPTORS = 16
"""Must be left for a start, which takes 11 for a moment: uvloop never closes those of a start that fails for want of
more, and calls that an unknown error."""

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


async def start_supervisor(arguments: Sequence[object], **options: Any) -> Process:
    """Starts it as `anyio.open_process` does, but is never cancelled half-way: asyncio then gives up a process that
    runs already, with its pipes, and kills the supervisor alone, which may have started its program. It takes no longer
    than fork and exec; whoever is cancelled meanwhile hears of it at the next await, when the process is theirs to end.

    Raises:
        OSError: it can't be started.
    """
    command = [sys.executable, "-I", "-S", str(_SUPERVISOR), *map(str, arguments)]
    await checkpoint_if_cancelled()
    check_spare(SPARE_DESCRIPTORS)
    with anyio.CancelScope(shield=True):
        # A session of its own: a Ctrl-C in the terminal is for this server, which ends its children in order.
        return await anyio.open_process(command, start_new_session=True, **options)
    raise AssertionError("nothing cancels a shield of its own")
