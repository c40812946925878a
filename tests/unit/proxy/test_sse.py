"""Event streams are taken apart whatever the pieces are that they come in."""

import pytest

from serena_central.proxy.sse import EventParser

STREAM = (
    b': comment\r\nevent: message\r\ndata: {"a":1}\r\n\r\n'
    b"id: 7\ndata:one\ndata: two\n\nretry: 5\n\ndata: three\r\rdata: \n\n"
)
EVENTS = [b'{"a":1}', b"one\ntwo", b"three"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_of_any_size_give_the_same_events(size: int) -> None:
    parser = EventParser(1000)
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [data for piece in pieces for data in parser.feed(piece)] == EVENTS


def test_an_event_without_end_is_refused() -> None:
    parser = EventParser(100)
    with pytest.raises(ValueError, match="larger than 100"):
        list(parser.feed(b"data: " + b"x" * 200))
