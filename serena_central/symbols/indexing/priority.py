"""Whose turn it is on one root: callers go first, and what works in the background gives way to them for a moment."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

GIVES_WAY_S = 0.1
"""How long background work waits for callers before each step: calls are quick, and it must not starve."""


class Turns:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._callers = 0
        self._quiet = anyio.Event()

    @contextmanager
    def caller(self) -> Generator[None]:
        """While somebody waits for an answer about this root, background work gives way."""
        self._callers += 1
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers:
                self._quiet.set()
                self._quiet = anyio.Event()

    async def give_way(self) -> None:
        """Waits a little for callers: what works in the background does so before each question."""
        with anyio.move_on_after(GIVES_WAY_S):
            while self._callers:
                await self._quiet.wait()
