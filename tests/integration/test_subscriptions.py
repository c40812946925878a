"""Streams of notices of the modern era, in both lanes."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest

from serena_central.mcp_server.protocol import SUBSCRIBED, SUBSCRIPTION_ID_KEY
from serena_central.mcp_server.subscriptions import MOST_STREAMS, MOST_UNREAD, MOST_URIS, Subscription, Wanted
from serena_central.sessions.session import Session
from tests.integration.test_mcp_endpoint import LANES, Face, a_face, until
from tests.support.mcp import RawClient, messages_in

pytestmark = pytest.mark.anyio

ALL = {"toolsListChanged": True, "resourceSubscriptions": ["serena://a", "serena://b"], "promptsListChanged": False}


@pytest.fixture(params=LANES)
async def face(request: pytest.FixtureRequest) -> AsyncGenerator[Face]:
    async with a_face(lane=request.param) as running:
        yield running


@asynccontextmanager
async def listening(client: RawClient, wanted: dict[str, Any]) -> AsyncGenerator[Any]:
    """The messages of a stream."""
    sent = client.request("subscriptions/listen", {"notifications": wanted})
    response = await client.http.send(sent, stream=True)

    async def messages() -> AsyncGenerator[dict[str, Any]]:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                yield json.loads(line.removeprefix("data: "))

    try:
        with anyio.fail_after(30):
            yield messages()
    finally:
        await response.aclose()


def session_of(face: Face) -> Session:
    return face.sessions.get("s")


async def test_a_client_hears_of_what_it_asked_for_and_of_nothing_else(face: Face) -> None:
    async with face.raw("modern", x_serena_session="s") as client, listening(client, ALL) as stream:
        first = await anext(stream)
        number = first["params"]["_meta"][SUBSCRIPTION_ID_KEY]
        honored = {"toolsListChanged": True, "resourceSubscriptions": ["serena://a", "serena://b"]}
        assert (first["method"], first["params"]["notifications"]) == (SUBSCRIBED, honored)
        subscriptions, session = face.subscriptions, session_of(face)
        subscriptions.list_changed(session, "resources")
        subscriptions.list_changed(session, "prompts")
        subscriptions.resource_updated(session, "serena://c")
        subscriptions.resource_updated(session, "serena://b")
        subscriptions.list_changed(session, "tools")
        about = {"_meta": {SUBSCRIPTION_ID_KEY: number}}
        assert await anext(stream) == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "serena://b", **about},
        }
        assert await anext(stream) == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": about,
        }
        subscriptions.close()
        last = await anext(stream)
        assert last["id"] == number
        assert last["result"]["resultType"] == "complete"
        assert last["result"]["_meta"][SUBSCRIPTION_ID_KEY] == number
        assert [message async for message in stream] == []


async def test_streams_are_bounded_in_number_and_end_with_their_client(face: Face) -> None:
    async with face.raw("modern", x_serena_session="s") as client:
        async with listening(client, ALL) as stream:
            await anext(stream)
            with subscriptions_full(face):
                refused = await client.send("subscriptions/listen", {"notifications": ALL})
                (answer,) = messages_in(refused.text)
                assert f"{MOST_STREAMS} streams of notices" in answer["error"]["message"]
            assert (await client.call("echo", text="on"))["content"]
        await until(lambda: not face.subscriptions._of[session_of(face)])


def subscriptions_full(face: Face) -> Any:
    @contextmanager
    def filled() -> Generator[None]:
        streams = face.subscriptions._of[session_of(face)]
        others = {Subscription(number, Wanted()) for number in range(MOST_STREAMS - 1)}
        streams |= others
        yield
        streams -= others

    return filled()


async def test_a_stream_is_about_a_bounded_number_of_resources(face: Face) -> None:
    wanted = {"resourceSubscriptions": [f"test://{number}" for number in range(MOST_URIS + 1)]}
    async with face.raw("modern", x_serena_session="s") as client:
        refused = await client.send("subscriptions/listen", {"notifications": wanted})
        (answer,) = messages_in(refused.text)
    assert f"at most {MOST_URIS} resources" in answer["error"]["message"]


async def test_an_open_stream_shows_that_its_client_lives(face: Face) -> None:
    async with face.raw("modern", x_serena_session="s") as client:
        async with listening(client, ALL) as stream:
            await anext(stream)
            assert session_of(face).holders == 1
        await until(lambda: session_of(face).holders == 0)


async def test_what_a_slow_client_does_not_read_is_bounded_and_said_once() -> None:
    subscription = Subscription(1, Wanted(tools_list_changed=True, resource_subscriptions=list(map(str, range(200)))))
    for _ in range(3):
        subscription.list_changed("tools")
    for uri in range(200):
        subscription.resource_updated(str(uri))
    read = [await subscription.next() for _ in range(MOST_UNREAD)]
    assert len(read) == MOST_UNREAD
    assert [one["method"] for one in read if one].count("notifications/tools/list_changed") == 1
    with anyio.fail_after(5):
        assert await subscription.next() is None
