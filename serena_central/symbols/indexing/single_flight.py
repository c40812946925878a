"""Files that are being asked about: never twice at once, and an answer about a file that changed does not count."""

import anyio


class Flight:
    """One file's question. `stale`: the file changed meanwhile."""

    __slots__ = ("done", "stale")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.stale = False

    def outdate(self) -> None:
        """The answer will not count; who waits for it asks anew."""
        self.stale = True
        self.done.set()


class Flights:
    """By path, and whether the file is asked about by syntax: that waits for no server which may hang."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, bool], Flight] = {}

    def get(self, path: str, *, by_syntax: bool) -> Flight | None:
        return self._under_way.get((path, by_syntax))

    def begin(self, path: str, *, by_syntax: bool) -> Flight:
        """To be followed by `end`, whatever comes."""
        flight = self._under_way[path, by_syntax] = Flight()
        return flight

    def end(self, path: str, flight: Flight, *, by_syntax: bool) -> None:
        if self._under_way.get((path, by_syntax)) is flight:
            del self._under_way[path, by_syntax]
        flight.done.set()

    def outdate(self, path: str) -> None:
        """A file changed."""
        for by_syntax in (False, True):
            flight = self._under_way.pop((path, by_syntax), None)
            if flight is not None:
                flight.outdate()

    def outdate_all(self) -> None:
        for flight in self._under_way.values():
            flight.outdate()
        self._under_way.clear()
