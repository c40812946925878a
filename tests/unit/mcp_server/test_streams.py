"""Streams by GET whose client reads slowly. What they send otherwise is tested over HTTP in tests/integration."""

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.types import Message

from serena_central.mcp_server import event_log, sse
from serena_central.mcp_server.event_log import MOST_EVENTS, STANDING
from serena_central.mcp_server.sse import PING
from serena_central.mcp_server.streams import Streams

pytestmark = pytest.mark.anyio


async def served(streams: Streams, stream: str, after: int | None, meanwhile: Callable[[bytes], None]) -> list[bytes]:
    """What a client gets until the stream ends; `meanwhile` happens while it reads a part."""
    parts: list[bytes] = []

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        if part := message.get("body"):
            parts.append(part)
            meanwhile(part)

    with anyio.fail_after(5):
        await streams.serve(stream, after, receive, send, [])
    return parts


async def test_a_notice_that_comes_while_a_ping_is_sent_is_sent_next(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams()
    monkeypatch.setattr(sse, "PING_S", 0)

    def meanwhile(part: bytes) -> None:
        if part == PING:
            monkeypatch.setattr(sse, "PING_S", math.inf)
            streams.say({"method": "a"})
        else:
            streams.close(STANDING)

    assert [b'"a"' in part for part in await served(streams, STANDING, None, meanwhile)] == [False, True]


def forgets_by_number(streams: Streams, _monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(MOST_EVENTS):
        streams.log.add("8")


def forgets_by_age(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT_S", -1)
    streams.log.expire()


@pytest.mark.parametrize("forgets", [forgets_by_number, forgets_by_age])
@pytest.mark.parametrize("is_used_again", [False, True])
async def test_a_stream_whose_answer_is_not_kept_until_its_client_reads_it_ends_without(
    monkeypatch: pytest.MonkeyPatch, forgets: Any, is_used_again: bool
) -> None:
    streams = Streams()
    streams.log.add("7")
    streams.log.add("7", b"progress")

    def meanwhile(part: bytes) -> None:
        if b"progress" in part:
            streams.log.add("7", b"answer", is_last=True)
            forgets(streams, monkeypatch)
            if is_used_again:
                streams.log.add("7", b"other")

    (part,) = await served(streams, "7", 1, meanwhile)
    assert b"progress" in part
