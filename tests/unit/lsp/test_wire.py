"""The connection against a peer in memory, which reads and writes frames by hand."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from serena_central.lsp.wire import (
    MAX_QUEUED_FRAMES,
    AnswerUnreadable,
    Connection,
    ConnectionLost,
    ErrorAnswer,
    FrameReader,
    MethodUnknown,
    frame,
)

pytestmark = pytest.mark.anyio


class Receive(ByteReceiveStream):
    def __init__(self, inner: MemoryObjectReceiveStream[bytes]) -> None:
        self.inner = inner

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self.inner.receive()

    async def aclose(self) -> None:
        await self.inner.aclose()


class Send(ByteSendStream):
    def __init__(self, inner: MemoryObjectSendStream[bytes]) -> None:
        self.inner = inner

    async def send(self, item: bytes) -> None:
        await self.inner.send(item)

    async def aclose(self) -> None:
        await self.inner.aclose()


class Peer:
    """The server's end. `heard` are the notifications that the client was told of."""

    def __init__(self) -> None:
        self.to_client, client_reads = anyio.create_memory_object_stream[bytes](100)
        client_writes, self.from_client = anyio.create_memory_object_stream[bytes](0)
        self.receive, self.send = Receive(client_reads), Send(client_writes)
        self.heard: list[str] = []
        self.arrived: list[dict[str, Any]] = []
        self.frames = FrameReader()
        self.connection = Connection("peer", on_request=self.answer, on_notification=self.hear)

    def answer(self, method: str, params: msgspec.Raw) -> Any:
        if method == "echo":
            return msgspec.json.decode(params)
        if method == "broken":
            raise ValueError("as scripted")
        raise MethodUnknown(method)

    def hear(self, method: str, params: msgspec.Raw) -> None:
        if method == "broken":
            raise ValueError("as scripted")
        self.heard.append(method)

    async def next(self) -> dict[str, Any]:
        while not self.arrived:
            self.arrived += [json.loads(body) for body in self.frames.feed(await self.from_client.receive())]
        return self.arrived.pop(0)

    async def say(self, message: Any) -> None:
        await self.say_bytes(frame(json.dumps(message).encode()))

    async def say_bytes(self, data: bytes) -> None:
        await self.to_client.send(data)

    def hang_up(self) -> None:
        self.to_client.close()


@asynccontextmanager
async def connected() -> AsyncGenerator[Peer]:
    peer = Peer()
    with anyio.fail_after(60), peer.to_client, peer.from_client, peer.receive.inner, peer.send.inner:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.connection.run, peer.receive, peer.send)
            yield peer
            tasks.cancel_scope.cancel()


async def test_an_answer_reaches_its_request_whatever_the_order() -> None:
    async with connected() as peer:
        first = await peer.connection.request("first", {})
        second = await peer.connection.request("second", {"x": 1})
        assert [(await peer.next())["id"], (await peer.next())["id"]] == [first.id, second.id]
        await peer.say({"id": second.id, "result": 2})
        await peer.say({"id": first.id, "result": None})
        assert await first.answer(int | None) is None
        assert await second.answer(int) == 2


async def test_an_error_answer_is_raised_with_its_code() -> None:
    async with connected() as peer:
        pending = await peer.connection.request("x", {})
        await peer.say({"id": pending.id, "error": {"code": -32801, "message": "content modified"}, "result": None})
        with pytest.raises(ErrorAnswer) as caught:
            await pending.answer(int)
        assert (caught.value.code, caught.value.message) == (-32801, "content modified")


@pytest.mark.parametrize(
    "answer",
    [
        b'{"id": 1, "result": "text"}',
        b'{"id": 1, "result": [1, 2',
        b'{"id": 1}',
        b'{"id": 1, "error": 5}',
        b'\xff{"id": 1, ',
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_and_keeps_the_connection(answer: bytes) -> None:
    async with connected() as peer:
        pending = await peer.connection.request("x", {})
        await peer.say_bytes(frame(answer))
        with pytest.raises(AnswerUnreadable):
            await pending.answer(int)
        after = await peer.connection.request("y", {})
        await peer.say({"id": after.id, "result": 3})
        assert await after.answer(int) == 3


async def test_broken_framing_ends_the_connection_and_wakes_every_waiter() -> None:
    async with connected() as peer:
        pending = await peer.connection.request("x", {})
        await peer.say_bytes(b"no header at all\r\n\r\n")
        with pytest.raises(ConnectionLost):
            await pending.answer(int)
        with pytest.raises(ConnectionLost):
            await peer.connection.request("y", {})


async def test_the_end_of_the_stream_wakes_every_waiter() -> None:
    async with connected() as peer:
        pending = [await peer.connection.request("x", {"n": n}) for n in range(3)]
        peer.hang_up()
        for waiter in pending:
            with pytest.raises(ConnectionLost):
                await waiter.answer(int)


async def test_a_cancelled_caller_cancels_its_request() -> None:
    async with connected() as peer:
        pending = await peer.connection.request("x", {})
        await peer.next()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await pending.answer(int)
        cancellation = await peer.next()
        assert (cancellation["method"], cancellation["params"]) == ("$/cancelRequest", {"id": pending.id})
        await peer.say({"id": pending.id, "result": 1})  # late: dropped


async def test_identical_requests_in_flight_are_sent_once_and_cancelled_with_their_last_waiter() -> None:
    async with connected() as peer:
        first = await peer.connection.request("x", {"n": 1}, shared=True)
        second = await peer.connection.request("x", {"n": 1}, shared=True)
        other = await peer.connection.request("x", {"n": 2}, shared=True)
        assert first is second
        assert other is not first
        assert [(await peer.next())["params"], (await peer.next())["params"]] == [{"n": 1}, {"n": 2}]
        scopes = [anyio.CancelScope(), anyio.CancelScope()]

        async def wait(scope: anyio.CancelScope) -> None:
            with scope:
                await first.answer(int)

        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(wait, scope)
            await anyio.wait_all_tasks_blocked()
            scopes[0].cancel()
            await anyio.wait_all_tasks_blocked()
            peer.connection.notify("marker", {})
            assert (await peer.next())["method"] == "marker"  # and no cancellation before it
            scopes[1].cancel()
        assert (await peer.next())["method"] == "$/cancelRequest"


async def test_a_request_after_a_notification_shares_no_older_answer() -> None:
    async with connected() as peer:
        before = await peer.connection.request("x", {}, shared=True)
        peer.connection.notify("textDocument/didChange", {})
        assert await peer.connection.request("x", {}, shared=True) is not before


async def test_requests_of_the_server_are_answered_and_unknown_ones_refused() -> None:
    async with connected() as peer:
        await peer.say({"id": "a", "method": "echo", "params": [1]})
        await peer.say({"id": 7, "method": "nothing"})
        await peer.say({"id": 8, "method": "broken"})
        assert await peer.next() == {"jsonrpc": "2.0", "id": "a", "result": [1]}
        assert (await peer.next())["error"]["code"] == -32601
        assert (await peer.next())["error"]["code"] == -32603


async def test_a_notification_that_cannot_be_handled_does_no_harm() -> None:
    async with connected() as peer:
        await peer.say({"method": "broken"})
        await peer.say({"method": "fine"})
        pending = await peer.connection.request("x", {})
        await peer.say({"id": pending.id, "result": 1})
        assert await pending.answer(int) == 1
        assert peer.heard == ["fine"]


async def test_a_server_that_does_not_read_makes_senders_wait_and_the_end_lets_them_go() -> None:
    async with connected() as peer:
        with anyio.move_on_after(0.2) as waited:
            for _ in range(MAX_QUEUED_FRAMES * 3):
                await peer.connection.drain()
                peer.connection.notify("x", {})
        assert waited.cancelled_caught
        async with anyio.create_task_group() as tasks:

            async def one_more() -> None:
                with pytest.raises(ConnectionLost):
                    await peer.connection.drain()

            tasks.start_soon(one_more)
            await anyio.wait_all_tasks_blocked()
            peer.hang_up()
