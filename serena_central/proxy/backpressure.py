"""Large answers come in one after the other, so that a client that doesn't read makes the server wait, not our memory
grow. Whose answers they are it doesn't know."""

from types import TracebackType

from serena_central.proxy.event_loop import Lock

LARGE_BYTES = 256 * 1024
"""More of an answer is held for one request at a time; 64 of them are read at once."""


class Turn:
    """One answer's part in it: `async with Turn(lock) as turn`, and `await turn.at(size)` as it grows and shrinks."""

    def __init__(self, large: Lock) -> None:
        self._large = large
        self._mine = False

    async def __aenter__(self) -> "Turn":
        return self

    async def at(self, held_bytes: int) -> None:
        """Returns when so much may be held; a wait ends when the large answer before has been written."""
        if held_bytes > LARGE_BYTES and not self._mine:
            await self._large.take()
            self._mine = True
        elif held_bytes <= LARGE_BYTES and self._mine:
            self._end()

    def _end(self) -> None:
        self._mine = False
        self._large.give_back()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine:
            self._end()
