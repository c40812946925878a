"""One response of the direct lane, and the task that looks after its connection."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio
import msgspec
import pytest
from anyio.abc import TaskGroup
from starlette.types import Message

from serena_central.mcp_server import direct_reply
from serena_central.mcp_server.direct_reply import DirectReply, ModernWire
from serena_central.mcp_server.sse import PING, encoded

pytestmark = pytest.mark.anyio

ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}


class BrokenWire(ModernWire):
    def opening(self) -> bytes:
        raise OSError("the log is full")


class Client:
    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.gone = anyio.Event()
        self.heard = anyio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.heard.set()


@pytest.fixture
async def attendants() -> AsyncGenerator[TaskGroup]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_reply, "ATTENDED_AFTER_S", 0)
    monkeypatch.setattr(direct_reply, "STREAM_AFTER_S", 0)


def ok(_message: object) -> int:
    return 200


async def test_what_fails_beside_the_work_ends_it_and_is_raised_and_the_next_reply_is_as_usual(
    attendants: TaskGroup,
) -> None:
    client = Client()

    async def never() -> direct_reply.Message:
        await anyio.sleep_forever()
        raise AssertionError

    reply = DirectReply(client.receive, client.send, BrokenWire(), attendants)
    with pytest.raises(OSError, match="the log is full"):
        await reply.run(never, ok)

    async def late() -> direct_reply.Message:
        while len(client.sent) < 2:
            client.heard = anyio.Event()
            await client.heard.wait()
        return ANSWER

    client = Client()
    await DirectReply(client.receive, client.send, ModernWire(), attendants).run(late, ok)
    assert [message.get("body") for message in client.sent][1] == PING
    assert client.sent[-1]["body"].startswith(b"event: message")


async def test_what_others_tell_after_the_answer_is_made_is_not_sent(attendants: TaskGroup) -> None:
    for tells_before in (False, True):
        client, notice = Client(), {"jsonrpc": "2.0", "method": "notifications/message"}
        reply = DirectReply(client.receive, client.send, ModernWire(), attendants)

        async def work(reply: DirectReply = reply, notice: Message = notice, *, tells: bool = tells_before) -> Message:
            if tells:
                await reply.tell(notice)
            return ANSWER

        await reply.run(work, ok)
        sent = len(client.sent)
        await reply.tell(notice)
        assert len(client.sent) == sent
        assert sum(message["type"] == "http.response.start" for message in client.sent) == 1


async def test_what_fails_while_news_are_sent_leaves_nothing_running(
    attendants: TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_reply, "STREAM_AFTER_S", 3600)
    client = Client()
    before = len(anyio.get_running_tasks())
    both: list[int] = []

    async def broken(_message: Message) -> None:
        both.append(len(anyio.get_running_tasks()) - before)
        raise OSError("the log is full")

    reply = DirectReply(client.receive, broken, ModernWire(), attendants, "p")

    async def work() -> direct_reply.Message:
        assert reply.on_progress is not None
        reply.on_progress("half", 0.5)
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(reply, "_begin_stream", _after_the_other(reply._begin_stream))
    with pytest.raises(OSError, match="the log is full"):
        await reply.run(work, ok)
    assert both == [2], "one sends news, and one looks after the connection"
    await anyio.wait_all_tasks_blocked()
    assert len(anyio.get_running_tasks()) == before


def _after_the_other(begin: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    async def later() -> None:
        await anyio.sleep(0.05)  # the connection is looked after meanwhile
        await begin()

    return later


async def test_a_reply_that_was_looked_after_is_freed_with_its_answer(attendants: TaskGroup) -> None:
    """It need not wait for the garbage collector: answers may have megabytes."""
    client = Client()

    async def late() -> direct_reply.Message:
        await client.heard.wait()
        return ANSWER

    reply = DirectReply(client.receive, client.send, ModernWire(), attendants)
    left = weakref.ref(reply)
    gc.collect()
    gc.disable()
    try:
        await reply.run(late, ok)
        await anyio.wait_all_tasks_blocked()
        del reply
        assert left() is None
    finally:
        gc.enable()


async def test_a_client_that_hangs_up_ends_the_work_of_the_modern_era(attendants: TaskGroup) -> None:
    client = Client()

    async def never() -> direct_reply.Message:
        client.gone.set()
        await anyio.sleep_forever()
        raise AssertionError

    await DirectReply(client.receive, client.send, ModernWire(), attendants).run(never, ok)
    assert client.sent[-1]["body"] == b""


async def test_a_wait_that_is_cancelled_from_elsewhere_ends_its_own_reply_alone(attendants: TaskGroup) -> None:
    async def never() -> direct_reply.Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def cancelled() -> Message:
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(waiting.cancel)
        return await waiting

    client = Client()
    with pytest.raises(RuntimeError, match="cancelled"):
        await DirectReply(cancelled, client.send, ModernWire(), attendants).run(never, ok)
    await test_a_client_that_hangs_up_ends_the_work_of_the_modern_era(attendants)


async def test_a_reply_that_nobody_can_look_after_any_more_is_sent() -> None:
    async with anyio.create_task_group() as attendants:
        pass
    client = Client()

    async def slow() -> direct_reply.Message:
        await anyio.sleep(0.01)
        return ANSWER

    with anyio.fail_after(60):
        await DirectReply(client.receive, client.send, ModernWire(), attendants).run(slow, ok)
    assert b'"result":{}' in client.sent[-1]["body"]


async def test_what_is_for_afterwards_is_done_once_when_the_answer_was_sent(attendants: TaskGroup) -> None:
    client = Client()
    sent: list[int] = []
    reply = DirectReply(client.receive, client.send, ModernWire(), attendants)

    async def answer() -> direct_reply.Message:
        reply.afterwards(lambda: sent.append(len(client.sent)))
        return ANSWER

    await reply.run(answer, ok)
    assert client.sent[-1]["body"].endswith(b'"result":{}}')
    assert sent == [len(client.sent)]
    reply.afterwards(lambda: sent.append(0))  # of a call that outlives the reply
    assert sent == [len(client.sent), 0]


@pytest.mark.parametrize("fails", ["work", "send"])
async def test_what_is_for_afterwards_is_done_when_nothing_can_be_sent(attendants: TaskGroup, fails: str) -> None:
    done: list[bool] = []

    async def send(_message: Message) -> None:
        raise OSError("the connection is broken")

    async def answer() -> direct_reply.Message:
        reply.afterwards(lambda: done.append(True))
        if fails == "work":
            raise OSError("the disk is broken")
        return ANSWER

    reply = DirectReply(Client().receive, send, ModernWire(), attendants)
    with pytest.raises(OSError, match="is broken"):
        await reply.run(answer, ok)
    assert done == [True]


def test_data_that_is_json_already_stands_in_a_message_as_it_is() -> None:
    data = msgspec.Raw(b'{"Cart": [1, "\xc3\xa9"]}')
    for number in (7, "half a pair: \ud800"):
        message = {"jsonrpc": "2.0", "id": number, "result": {"structuredContent": {"result": data}}}
        assert json.loads(encoded(message)) == {
            "jsonrpc": "2.0",
            "id": number,
            "result": {"structuredContent": {"result": {"Cart": [1, "é"]}}},
        }
