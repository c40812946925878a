"""A transport whose writes of one turn of the event loop are one."""

import asyncio
from typing import cast

import pytest

from serena_central.access.coalescing import MOST_HELD_BYTES, CoalescingTransport

pytestmark = pytest.mark.anyio


class Wire:
    """Notes what reaches it."""

    def __init__(self) -> None:
        self.did: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.did.append(data)

    def close(self) -> None:
        self.did.append("closed")

    def abort(self) -> None:
        self.did.append("aborted")

    def is_closing(self) -> bool:
        return "closed" in self.did

    def get_extra_info(self, name: str) -> str:
        return f"its {name}"


def coalescing(wire: Wire) -> CoalescingTransport:
    return CoalescingTransport(cast("asyncio.Transport", wire))


async def test_what_is_written_in_one_turn_is_one_write_and_the_next_turn_is_another() -> None:
    wire = Wire()
    transport = coalescing(wire)
    transport.write(b"head ")
    transport.write(b"body")
    assert wire.did == []
    await asyncio.sleep(0)
    assert wire.did == [b"head body"]
    transport.write(b"more")
    await asyncio.sleep(0)
    assert wire.did == [b"head body", b"more"]


async def test_what_was_written_before_an_end_is_sent_before_it() -> None:
    closed, aborted = Wire(), Wire()
    one, other = coalescing(closed), coalescing(aborted)
    for transport in (one, other):
        transport.write(b"head")
        transport.write(b"body")
    one.close()
    other.abort()
    await asyncio.sleep(0)
    assert closed.did == [b"headbody", "closed"]
    assert aborted.did == [b"headbody", "aborted"]
    assert one.is_closing()
    assert one.get_extra_info("socket") == "its socket"


async def test_nothing_is_written_to_a_connection_that_was_lost_meanwhile() -> None:
    wire = Wire()
    coalescing(wire).write(b"head")
    wire.close()
    await asyncio.sleep(0)
    assert wire.did == ["closed"]


async def test_too_much_is_not_held_back() -> None:
    wire = Wire()
    transport = coalescing(wire)
    chunk = b"x" * (MOST_HELD_BYTES // 2)
    for _ in range(3):
        transport.write(chunk)
    assert wire.did == [chunk * 3]
    await asyncio.sleep(0)
    assert wire.did == [chunk * 3]


async def test_an_answer_that_is_complete_is_sent_at_once_and_nothing_is_sent_twice() -> None:
    wire = Wire()
    transport = coalescing(wire)
    transport.write(b"head ")
    transport.write(b"body")
    transport.flush()
    assert wire.did == [b"head body"]
    transport.write(b"next")
    await asyncio.sleep(0)
    assert wire.did == [b"head body", b"next"]
