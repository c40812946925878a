"""The reader of event streams, by WHATWG's rules."""

from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest

from serena_central.hub.sse import _EventReader

pytestmark = pytest.mark.anyio

BOM = b"\xef\xbb\xbf"


class _Parts(httpx2.AsyncByteStream):
    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


async def read(*parts: bytes) -> list[tuple[str, bytes]]:
    response = httpx2.Response(200, stream=_Parts(parts))
    return [(event.name, event.data) async for event in _EventReader().events(response)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"event: endpoint\ndata: /m\n\n", [("endpoint", b"/m")]),
        (BOM + b"event: endpoint\ndata: /m\n\n", [("endpoint", b"/m")]),
        (b"data: 1\n\n" + BOM + b"data: 2\n\n", [("message", b"1")]),
        (b"event: endpoint\n\ndata: 1\n\n", [("message", b"1")]),
        (b"\n\r\n\r: note\n\nid: 1\nretry: 9\n\n", []),
        (b": note\r\nid: 1\r\ndata:1\r\ndata: 2\r\n\r\n", [("message", b"1\n2")]),
        (b"data: 1\rdata:  2\r\r", [("message", b"1\n 2")]),
        (b"data: 1\n\ndata: 2\n", [("message", b"1")]),
    ],
)
async def test_events_are_read_as_the_standard_says_wherever_the_stream_is_divided(
    stream: bytes, events: list[tuple[str, bytes]]
) -> None:
    for at in range(1, len(stream)):
        assert await read(stream[:at], stream[at:]) == events
    assert await read(*(bytes([byte]) for byte in stream)) == events
