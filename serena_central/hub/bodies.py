"""What remote upstreams send as bodies of their responses, in bounded memory and in turns with all other tasks: a few
compressed bytes may become gigabytes.
"""

from collections.abc import AsyncIterator

import anyio.lowlevel
import httpx2

from serena_central.hub.wire_messages import MAX_MESSAGE_BYTES

SLICE_BYTES = 65_536
"""Read before other tasks have a turn."""

MAX_ENCODINGS = 4
"""Of one body, one upon the other: each multiplies what its bytes may become."""


class BodyTooLong(httpx2.TransportError):
    """Says the limit."""


async def bound(response: httpx2.Response) -> None:
    """For each response of a client (httpx2's event hook), before anybody reads it. Nobody needs what a redirect says,
    and it would be read to its end. Event streams have no end; each of their events has a limit.

    Raises:
        httpx2.DecodingError
    """
    if response.has_redirect_location:
        await response.stream.aclose()  # type: ignore[union-attr] - of an AsyncClient
        response.stream = httpx2.ByteStream(b"")
    else:
        response.stream = _Body(response)
    response.headers.pop("content-encoding", None)


def kind_of(response: httpx2.Response) -> str:
    """Its content's type, in small letters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Body(httpx2.AsyncByteStream):
    """Decompressed, in slices."""

    def __init__(self, response: httpx2.Response) -> None:
        if len(response.headers.get_list("content-encoding", split_commas=True)) > MAX_ENCODINGS:
            raise httpx2.DecodingError(f"it is compressed more than {MAX_ENCODINGS} times")
        self._limit = None if kind_of(response) == "text/event-stream" else MAX_MESSAGE_BYTES
        self._compressed = httpx2.Response(
            response.status_code, headers=response.headers, stream=response.stream, request=response.request
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._compressed.aiter_bytes():
            size += len(part)
            if self._limit is not None and size > self._limit:
                raise BodyTooLong(f"its answer is too long: the limit is {self._limit / 1e6:.0f} MB")
            for at in range(0, len(part), SLICE_BYTES):
                await anyio.lowlevel.checkpoint()
                yield part[at : at + SLICE_BYTES]

    async def aclose(self) -> None:
        await self._compressed.aclose()
