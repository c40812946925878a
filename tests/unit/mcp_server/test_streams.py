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


async def test_every_notice_that_waits_for_a_stream_comes_however_many_they_are() -> None:
    streams, uris = Streams(), [f"x:{number}" for number in range(2 * MOST_EVENTS)]
    for uri in uris:
        streams.say(updated(uri))
        streams.say({"method": "list"})
        streams.log.add("7")  # what calls are sent meanwhile

    def meanwhile(part: bytes) -> None:
        if uris[-1].encode() in part:
            streams.close(STANDING)

    came = await served(streams, STANDING, None, meanwhile)
    assert [uri for uri in uris if not any(f'"{uri}"'.encode() in part for part in came)] == []
    assert sum(b'"list"' in part for part in came) == 1


async def test_who_comes_back_after_more_than_is_kept_is_told_that_all_has_changed() -> None:
    streams = Streams({"x:1"})

    def meanwhile(part: bytes) -> None:
        if uri in part.decode():
            streams.close(STANDING)

    for number in range(MOST_EVENTS + 2):
        uri = f"y:{number}"
        streams.say(updated(uri))
    await served(streams, STANDING, None, meanwhile)
    uri = "x:1"
    came = b"".join(await served(streams, STANDING, 1, meanwhile)).decode()
    for news in ("tools/list_changed", "resources/list_changed", '"x:1"', f'"y:{MOST_EVENTS + 1}"'):
        assert news in came
    assert '"y:1"' not in came


async def test_a_question_that_nobody_waits_for_any_longer_is_not_asked() -> None:
    streams = Streams()
    with anyio.move_on_after(0):
        await streams.ask("roots/list")
    streams.say({"method": "a"})
    (part,) = await served(streams, STANDING, None, lambda _: streams.close(STANDING))
    assert b"roots/list" not in part


def updated(uri: str) -> dict[str, Any]:
    return {"method": "updated", "params": {"uri": uri}}


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
