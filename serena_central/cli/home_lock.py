"""The lock by which a user has one server: held as long as the process lives, on a file in the server's home.

A home that is moved or deleted takes the lock along, and a second server could start at the same path. The first one
must not write there anymore: neither the journal, nor the database, nor the announcement is its own.
"""

import logging
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import anyio
import anyio.to_thread
import click

from serena_central.core.errors import AlreadyRunning
from serena_central.core.periodic import repeat
from serena_central.core.places import Places
from serena_central.standalone.exit_codes import FAILED
from serena_central.standalone.home import Home
from serena_central.standalone.lock import lock_at_once

logger = logging.getLogger(__name__)

OTHER_S = 15.0
"""How long another server may take to start or stop before this one gives up."""

OTHER_POLL_S = 0.05

LOOKS = 3
"""Attempts before a server that is announced counts as running: who only asks whether the lock is held has it for some
microseconds, and the announcement may be of a server that was killed."""

CHECK_S = 5.0
"""Between two checks that the lock is still the one at its path."""


class HomeLock:
    """Held within `hold_alone`."""

    def __init__(self, places: Places, descriptor: int) -> None:
        self._places = places
        self._descriptor = descriptor

    @property
    def is_lost(self) -> bool:
        """Whether its file was deleted or replaced, or its home moved. A file system that is away proves nothing."""
        try:
            there = self._places.lock_file.stat(follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return not os.path.samestat(there, os.fstat(self._descriptor))

    @asynccontextmanager
    async def checked(self) -> AsyncGenerator[None]:
        """Calls `end_if_lost` from time to time while the block runs."""
        # In a thread: a file system that hangs holds up nobody.
        check = partial(anyio.to_thread.run_sync, self.end_if_lost, abandon_on_cancel=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(repeat, "the check of the home's lock", check, every_s=CHECK_S))
            yield
            tasks.cancel_scope.cancel()

    def end_if_lost(self) -> None:
        """Ends the process as a kill would: an orderly stop writes into the home. What it started ends by itself."""
        if self.is_lost:
            message = (
                f"The server ends: {self._places.home} was moved or deleted while it ran, and may be another server's "
                "now. Stop a server before its folder is moved (`serena-central stop`)."
            )
            logger.error("%s", message)
            try:
                click.echo(f"serena-central: {message}", err=True)
            finally:  # nobody may read it any more
                os._exit(FAILED)


@contextmanager
def hold_alone(places: Places) -> Generator[HomeLock]:
    """Holds the lock of this user's one server. One that starts or stops is waited for: soon it runs, or is gone.

    Raises:
        AlreadyRunning
    """
    with places.lock_file.open("a") as file:
        deadline, looks = time.monotonic() + OTHER_S, 0
        while not lock_at_once(file.fileno()):
            running, looks = Home(str(places.home)).announcement(), looks + 1
            if (running and looks >= LOOKS) or time.monotonic() > deadline:
                raise AlreadyRunning(running.url if running else "", running.pid if running else 0)
            time.sleep(OTHER_POLL_S)
        yield HomeLock(places, file.fileno())
