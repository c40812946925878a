"""Bodies of remote upstreams' responses: bounded, and read in turns with all other tasks."""

import gzip

import anyio
import anyio.lowlevel
import httpx2
import pytest

from serena_central.hub import bodies

pytestmark = pytest.mark.anyio


async def responded(body: bytes, **headers: str) -> httpx2.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = httpx2.Request("POST", "http://127.0.0.1/mcp")
    response = httpx2.Response(200, headers=sent, stream=httpx2.ByteStream(body), request=request)
    await bodies.bound(response)
    return response


async def test_other_tasks_have_a_turn_while_a_few_bytes_become_many() -> None:
    newlines = gzip.compress(b"\n" * 5_000_000)
    response = await responded(newlines, content_type="text/event-stream", content_encoding="gzip")
    turns: list[int] = []
    read = 0

    async def other() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            turns.append(read)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        async for part in response.aiter_bytes():
            read += len(part)
        tasks.cancel_scope.cancel()
    assert read == 5_000_000
    assert len(set(turns)) > 50


async def test_a_body_ends_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_MESSAGE_BYTES", 1_000_000)
    bomb = gzip.compress(gzip.compress(b" " * 50_000_000))
    response = await responded(bomb, content_type="application/json", content_encoding="gzip, gzip")
    with pytest.raises(bodies.BodyTooLong, match="the limit is 1 MB"):
        await response.aread()


async def test_a_body_that_is_compressed_very_often_is_not_read() -> None:
    with pytest.raises(httpx2.DecodingError):
        await responded(b"", content_encoding=", ".join(["gzip"] * 1000))
