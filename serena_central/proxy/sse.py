"""Parses an event stream (the HTML standard's `text/event-stream`): pieces of bytes → the data of each event.

Names, ids and retry times of events mean nothing to MCP's messages and are dropped.
"""

from collections.abc import Iterator


class EventParser:
    """Feed it pieces as they come. Data is bytes, several `data` lines joined by a line feed."""

    def __init__(self, most_bytes: int) -> None:
        self._buffer = bytearray()
        self._scanned = 0
        self._data: list[bytes] = []
        self._most_bytes = most_bytes
        self._size = 0

    @property
    def held_bytes(self) -> int:
        """Of an event that is not complete yet."""
        return self._size + len(self._buffer)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that `piece` completes.

        Raises:
            ValueError: an event is larger than allowed.
        """
        self._buffer += piece
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._scanned))) >= 0:
            line = bytes(memoryview(self._buffer)[start:end])
            start = self._scanned = end + 1
            for part in line.removesuffix(b"\r").split(b"\r"):  # a lone CR ends a line, too
                data = self._take(part)
                if data:
                    yield data
        if start:
            del self._buffer[:start]
        self._scanned = len(self._buffer)
        if self.held_bytes > self._most_bytes:
            raise ValueError(f"an event is larger than {self._most_bytes} bytes")

    def _take(self, line: bytes) -> bytes:
        """The data of the event that `line` ends, if it does and has any."""
        if not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            return data
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data.append(value)
            self._size += len(value)
        return b""
