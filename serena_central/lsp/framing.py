"""LSP's message framing in a byte stream (LSP 3.17, "Base Protocol"). It knows nothing of what a frame holds."""

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""The largest frame that is read. References over a large monorepo stay under 10 MB; more is a broken server."""

MAX_HEADER_BYTES = 8 * 1024
"""A header block longer than this is no header."""


class BrokenFraming(Exception):
    """The bytes are no frame, and where the next one begins can't be known."""


class FrameReader:
    """Cuts a stream of bytes into frames, however it is chopped."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._needed: int | None = None
        self._max = max_frame_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes and gives the bodies that are complete now.

        Raises:
            BrokenFraming
        """
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        while True:
            if self._needed is None:
                end = buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
                if end < 0:
                    if len(buffer) >= MAX_HEADER_BYTES:
                        raise BrokenFraming("a header without an end")
                    return bodies
                self._needed = self._length(bytes(buffer[:end]))
                del buffer[: end + 4]
            if len(buffer) < self._needed:
                return bodies
            bodies.append(bytes(buffer[: self._needed]))
            del buffer[: self._needed]
            self._needed = None

    def _length(self, header: bytes) -> int:
        for line in header.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                value = value.strip()
                # The digits are counted first: int() on megabytes of them would take seconds.
                if not value.isdigit() or len(value) > 12 or int(value) > self._max:
                    raise BrokenFraming(f"Content-Length {value[:20]!r}, where at most {self._max} is allowed")
                return int(value)
        raise BrokenFraming(f"a header without Content-Length: {header[:80]!r}")


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
