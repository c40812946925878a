"""Lines of files that grow, read in blocks: memory is bounded whatever the file holds.

Only whole lines are consumed, so that a reader continues at `Lines.consumed` when the file has grown.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, TypeVar

import msgspec

from serena_central.core.decoding import JsonDecoder
from serena_central.transcripts.requests import MALFORMED, TOO_LONG, UNKNOWN, Drop, Dropped

Record = TypeVar("Record")

BLOCK = 4_000_000
"""Bytes read at once."""

LONGEST = 32_000_000
"""Bytes of a line that is still parsed: the limit of a request to the largest provider's API."""

CLOSING, NEWLINE = b"}\n"


class Lines:
    """The lines of `file` from byte `offset` on. `consumed` is the offset past the last whole line that was read."""

    def __init__(self, file: BinaryIO, offset: int, drop: Drop) -> None:
        self._file = file
        self._drop = drop
        self.consumed = offset

    def with_any(self, markers: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """Offset and bytes of each line that holds one of `markers`, without its end. The rest costs a search only.

        Of the rest, lines that do not end as an object does are dropped as malformed; what lies inside of those that
        do is not looked at. A last line without an end is passed on, too, but not consumed: it may be half written.
        """
        for start, block, whole in self._blocks():
            for first, end in _marked(block, markers):
                yield start + first, block[first:end].rstrip(b"\r")
            if whole:
                for offset, line in _cut_off(start, block):
                    if not any(marker in line for marker in markers):
                        self._drop(Dropped(offset, MALFORMED, "it does not end with }"))
                self.consumed = start + len(block)

    def with_text(self, needles: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """The same for lines that hold one of `needles`, which are lower case, in any case of ASCII's letters."""
        for start, block, _ in self._blocks():
            for first, end in _marked(block.lower(), needles):
                yield start + first, block[first:end].rstrip(b"\r")

    def decoded(self, decoder: "JsonDecoder[Record]", markers: Sequence[bytes]) -> Iterator[tuple[int, Record]]:
        """The same as records. Lines that the decoder refuses are dropped."""
        for offset, line in self.with_any(markers):
            one = decode(decoder, offset, line, self._drop)
            if one is not None:
                yield offset, one

    def all(self) -> Iterator[tuple[int, bytes]]:
        """Offset and bytes of every line that is not empty."""
        for start, block, whole in self._blocks():
            at = 0
            while at < len(block):
                end = block.find(b"\n", at)
                end = len(block) if end < 0 else end
                if line := block[at:end].rstrip(b"\r"):
                    yield start + at, line
                at = end + 1
            if whole:
                self.consumed = start + len(block)

    def _blocks(self) -> Iterator[tuple[int, bytes, bool]]:
        """Offset and bytes of pieces that begin and, but for the last, end with a line; whether they end with one."""
        self._file.seek(self.consumed)
        start, rest = self.consumed, b""
        while more := self._file.read(BLOCK):
            end = more.rfind(b"\n") + 1
            if not end:
                rest += more
                if len(rest) > LONGEST:
                    start = self._skip_line(start, len(rest))
                    rest = b""
                    if start < 0:
                        return
                continue
            block, rest_after = rest + more[:end], more[end:]
            yield start, block, True
            start, rest = start + len(block), rest_after
        if rest:
            yield start, rest, False

    def _skip_line(self, start: int, read: int) -> int:
        """The offset past a line of which `read` bytes were read; negative if it has no end yet."""
        length = read
        while more := self._file.read(BLOCK):
            end = more.find(b"\n") + 1
            if end:
                self._drop(Dropped(start, TOO_LONG))
                after = start + length + end
                self._file.seek(after)
                self.consumed = after
                return after
            length += len(more)
        self._drop(Dropped(start, TOO_LONG))
        return -1


def decode(decoder: "JsonDecoder[Record]", offset: int, content: bytes, drop: Drop) -> Record | None:
    """The record, None where it is dropped."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        drop(Dropped(offset, UNKNOWN, str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        drop(Dropped(offset, MALFORMED, str(error)))
    return None


def _marked(block: bytes, markers: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Where lines begin and end that hold one of the markers."""
    size = len(block)
    places = [_place(block, marker, 0) for marker in markers]
    while (place := min(places)) < size:
        first = block.rfind(b"\n", 0, place) + 1
        end = _place(block, b"\n", place)
        yield first, end
        for number, at in enumerate(places):
            if at < end:
                places[number] = _place(block, markers[number], end)


def _place(block: bytes, marker: bytes, start: int) -> int:
    """Where a marker stands, the block's end where it does not."""
    found = block.find(marker, start)
    return len(block) if found < 0 else found


def _cut_off(start: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines of a block of whole lines that cannot be objects, since something else than `}` ends them."""
    end = block.find(b"\n")
    while end >= 0:
        if block[end - 1] not in (CLOSING, NEWLINE):
            first = block.rfind(b"\n", 0, end) + 1
            line = block[first:end].strip()
            if line and line[-1] != CLOSING:
                yield start + first, line
        end = block.find(b"\n", end + 1)
