"""Streams that are taken up again: a broken connection is no cancellation, and what was sent meanwhile is not lost."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest

from serena_central.mcp_server.protocol import RESERVED
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio


class Event(NamedTuple):
    id: str
    data: dict[str, Any] | None


async def events(response: httpx.Response) -> AsyncIterator[Event]:
    number = ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data:"):
            yield Event(number, json.loads(line[5:]) if line[5:].strip() else None)


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "cart.txt").write_text("cart\n")
    async with running_central(tmp_path) as running:
        yield running


@pytest.fixture
async def client(central: RunningCentral, tmp_path: Path) -> AsyncGenerator[RawClient]:
    """Its calls go through the SDK, for they hold what the direct lane does not know, and so have a stream from the
    start."""
    async with central.raw("handshake", x_serena_project=str(tmp_path / "shop")) as client:
        yield client


def reading(client: RawClient) -> httpx.Request:
    params = {"name": "read_file", "arguments": {"relative_path": "cart.txt"}, "_meta": {f"{RESERVED}other": 1}}
    return client.request("tools/call", params)


async def resume(client: RawClient, event: str) -> list[Event]:
    headers = client.headers("", {}) | {"last-event-id": event}
    async with client.http.stream("GET", "/mcp", headers=headers) as response:
        assert response.status_code == 200
        return [event async for event in events(response)]  # it ends with the answer


async def test_an_answer_is_sent_again_to_who_comes_back_for_it(client: RawClient) -> None:
    async with client.http.stream(
        "POST",
        "/mcp",
        content=reading(client).content,
        headers=client.headers("", {}) | {"content-type": "application/json"},
    ) as response:
        first = await anext(events(response))
    assert first.data is None  # it tells an id to come back with
    with anyio.fail_after(30):
        (answer,) = await resume(client, first.id)
        assert answer.data is not None
        assert text_of(answer.data["result"]) == "cart\n"
        assert await resume(client, answer.id) == []


async def test_a_read_whose_connection_broke_goes_on(
    central: RunningCentral, client: RawClient, tmp_path: Path
) -> None:
    held = anyio.Event()
    opened = central.central.projects
    real = type(opened).open

    async def slowly(self: Any, root: Path) -> Any:
        await held.wait()
        return await real(self, root)

    type(opened).open = slowly
    try:
        sent = client.headers("", {}) | {"content-type": "application/json"}
        async with client.http.stream("POST", "/mcp", content=reading(client).content, headers=sent) as response:
            first = await anext(events(response))
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                got: list[Event] = []

                async def come_back() -> None:
                    got.extend(await resume(client, first.id))

                tasks.start_soon(come_back)
                await anyio.wait_all_tasks_blocked()
                held.set()
        (answer,) = [event for event in got if event.data is not None]
        assert answer.data is not None
        assert text_of(answer.data["result"]) == "cart\n"
    finally:
        type(opened).open = real


async def test_a_cancelled_call_gets_no_answer(central: RunningCentral, client: RawClient) -> None:
    opened = central.central.projects
    real = type(opened).open

    async def never(self: Any, root: Path) -> Any:
        await anyio.sleep_forever()

    type(opened).open = never
    try:
        request = reading(client)
        sent = client.headers("", {}) | {"content-type": "application/json"}
        with anyio.fail_after(30):
            async with client.http.stream("POST", "/mcp", content=request.content, headers=sent) as response:
                stream = events(response)
                await anext(stream)
                await client.notify("notifications/cancelled", {"requestId": json.loads(request.content)["id"]})
                assert [event async for event in stream] == []
    finally:
        type(opened).open = real


async def test_events_that_nobody_knows(client: RawClient) -> None:
    headers = client.headers("", {})
    gone = await client.http.get("/mcp", headers=headers | {"last-event-id": "r.0.1"})
    assert gone.status_code == 400
    assert "Send the request again" in gone.text
    for unknown in ("1", "g.0.1", "\xff"):
        async with client.http.stream(
            "GET", "/mcp", headers=headers | {"last-event-id": unknown.encode("latin-1")}
        ) as response:
            assert response.status_code == 200
