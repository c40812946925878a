"""The lists of one running upstream are read again when they may have changed: ever more rarely where they change
whenever they are read, or can't be read. It knows no list."""

import logging
from collections.abc import Awaitable, Callable

import anyio

from serena_central.core.errors import SerenaCentralError
from serena_central.standalone.backoff import Backoff

logger = logging.getLogger(__name__)

PAUSE_S, PAUSE_CAP_S = 0.5, 60.0
"""Between two readings: the first pause, and the longest."""


class ListChanges:
    """Belongs to the event loop's thread."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._news = anyio.Event()

    def heard(self) -> None:
        """The server says that a list has changed."""
        self._news.set()

    def begin_reading(self) -> None:
        """What is heard of from now on is not in what is read."""
        self._news = anyio.Event()

    async def follow(self, read: Callable[[], Awaitable[None]], bound_s: float) -> None:
        """Calls `read` after changes until it is cancelled. One that fails, or takes longer than `bound_s`, is made
        again: the server has said once that there is something new, and need not say it another time."""
        pauses = Backoff(PAUSE_S, PAUSE_CAP_S)
        while True:
            await self._news.wait()
            if not await self._is_read(read, bound_s):
                self._news.set()
            await anyio.sleep(pauses.next_s())
            if not self._news.is_set():
                pauses.reset()

    async def _is_read(self, read: Callable[[], Awaitable[None]], bound_s: float) -> bool:
        try:
            with anyio.fail_after(bound_s):
                await read()
        except (SerenaCentralError, TimeoutError) as error:
            logger.warning(
                "%s: its lists have changed, and can't be read yet: %s",
                self._server,
                error or f"no answer in {bound_s:g} s",
            )
            return False
        except Exception:  # of what is in a list: calls go on
            logger.exception("%s: its lists have changed, and can't be read", self._server)
            return False
        return True
