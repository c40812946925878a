"""Streams by GET, which need no SDK: the one outside of calls, and those of calls that are taken up again."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from serena_central.mcp_server.conversation import HandshakeConversation
from serena_central.mcp_server.protocol import RESERVED, RESOURCES_CHANGED, TOOLS_CHANGED
from tests.integration.test_mcp_endpoint import AUTHORIZED, Face, Remembered, a_face, until
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio

CHANGED = {"jsonrpc": "2.0", "method": TOOLS_CHANGED}


@pytest.fixture
async def face() -> AsyncGenerator[Face]:
    async with a_face() as running:
        yield running


class Stream:
    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.last_id = ""
        self._lines = response.aiter_lines()

    async def opened(self) -> str:
        """The id of the first event. What that says is left out."""
        while not self.last_id:
            line = await anext(self._lines)
            self.last_id = line.removeprefix("id: ") if line.startswith("id: ") else ""
        return self.last_id

    async def next(self) -> dict[str, Any]:
        """The next message. Raises anyio.EndOfStream."""
        with anyio.fail_after(30):
            async for line in self._lines:
                if line.startswith("id: "):
                    self.last_id = line.removeprefix("id: ")
                if line.startswith("data: {"):
                    return json.loads(line.removeprefix("data: "))
        raise anyio.EndOfStream


@asynccontextmanager
async def streaming(client: RawClient, last_id: str = "") -> AsyncIterator[Stream]:
    headers = client.headers("", {}) | ({"last-event-id": last_id} if last_id else {})
    async with client.http.stream("GET", "/mcp", headers=headers) as response:
        yield Stream(response)


def conversation_of(face: Face, client: RawClient) -> HandshakeConversation:
    found = face.transports.conversation(str(client.session_id))
    assert found is not None
    return found


async def test_a_notice_comes_at_once_and_one_of_before_the_stream_comes_once_when_it_opens(face: Face) -> None:
    async with face.raw("handshake") as client:
        conversation = conversation_of(face, client)
        for _ in range(3):
            conversation.notify(TOOLS_CHANGED)
        async with streaming(client) as stream:
            assert await stream.next() == CHANGED
            conversation.notify("notifications/resources/updated", {"uri": "serena://x"})
            assert (await stream.next())["params"] == {"uri": "serena://x"}
            conversation.notify(TOOLS_CHANGED)
            assert await stream.next() == CHANGED
        assert conversation.transport is None


async def test_what_came_while_a_stream_was_broken_comes_on_the_next(face: Face) -> None:
    async with face.raw("handshake") as client:
        conversation = conversation_of(face, client)
        async with streaming(client) as stream:
            conversation.notify(TOOLS_CHANGED)
            assert await stream.next() == CHANGED
            known = stream.last_id
        await until(lambda: not conversation.streams.stands)
        conversation.notify("notifications/resources/list_changed")
        async with streaming(client) as stream:
            assert (await stream.next())["method"].startswith("notifications/resources")
        await until(lambda: not conversation.streams.stands)
        async with streaming(client, known) as stream:  # it has not had that, as it says
            assert (await stream.next())["method"].startswith("notifications/resources")


async def test_after_a_restart_a_client_is_told_that_its_lists_may_be_others() -> None:
    openings = Remembered()
    async with a_face(openings=openings) as before, before.raw("handshake") as client:
        known = client.session_id
    async with (
        a_face(openings=openings) as after,
        httpx.AsyncClient(base_url=after.url, headers=AUTHORIZED, timeout=30) as http,
    ):
        client = RawClient(http, "handshake")
        client.session_id = known
        async with streaming(client) as stream:
            told = [await stream.next(), await stream.next()]
    assert [one["method"] for one in told] == [TOOLS_CHANGED, RESOURCES_CHANGED]


async def test_there_is_one_stream_outside_of_calls_and_it_needs_the_right_accept(face: Face) -> None:
    async with face.raw("handshake") as client, streaming(client) as first:
        assert first.status == 200
        async with streaming(client) as second:
            assert second.status == 409
        headers = client.headers("", {}) | {"accept": "application/json"}
        assert (await client.http.get("/mcp", headers=headers)).status_code == 406
        conversation_of(face, client).notify(TOOLS_CHANGED)
        assert await first.next() == CHANGED


async def test_who_comes_back_before_its_broken_connection_was_noticed_takes_its_place(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with face.raw("handshake") as client, streaming(client) as first:
        conversation = conversation_of(face, client)
        conversation.notify(TOOLS_CHANGED)
        await first.next()
        monkeypatch.setattr("serena_central.mcp_server.event_log.KEPT_S", -1)
        conversation.streams.log.expire()
        async with streaming(client, first.last_id) as second:
            assert second.status == 200
            with pytest.raises(anyio.EndOfStream):
                await first.next()
            conversation.notify(TOOLS_CHANGED)
            assert await second.next() == CHANGED


async def test_a_conversation_that_ends_ends_its_stream_and_so_does_a_server_that_stops(face: Face) -> None:
    async with (
        face.raw("handshake") as client,
        face.raw("handshake") as other,
        streaming(client) as stream,
        streaming(other) as kept,
    ):
        await client.http.delete("/mcp", headers=client.headers("", {}))
        with pytest.raises(anyio.EndOfStream):
            await stream.next()
        conversation_of(face, other).notify(TOOLS_CHANGED)
        assert await kept.next() == CHANGED
        face.endpoint.close_streams()
        with pytest.raises(anyio.EndOfStream):
            await kept.next()


async def answered(client: RawClient, question: dict[str, Any], said: dict[str, Any]) -> int:
    body = {"jsonrpc": "2.0", "id": question["id"], **said}
    return (await client.http.post("/mcp", json=body, headers=client.headers("", {}))).status_code


@asynccontextmanager
async def with_roots(face: Face) -> AsyncIterator[RawClient]:
    async with face.raw("handshake") as before:
        client = RawClient(before.http, "handshake", name="roots")
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": True}},
            "clientInfo": {"name": "roots", "version": "1"},
        }
        client.session_id = (await client.send("initialize", params)).headers["mcp-session-id"]
        await client.notify("notifications/initialized")
        yield client


async def test_a_client_is_asked_for_its_roots_and_again_when_they_changed(face: Face) -> None:
    async with with_roots(face) as client, streaming(client) as stream:
        conversation = conversation_of(face, client)
        question = await stream.next()
        assert question["method"] == "roots/list"
        roots = [{"uri": "https://no.folder"}, {"uri": "file:///srv/b%C3%BCcher", "name": "x"}]
        assert await answered(client, question, {"result": {"roots": roots}}) == 202
        await until(lambda: conversation.roots_folder == "/srv/bücher")
        await client.notify("notifications/roots/list_changed")
        again = await stream.next()
        assert again["id"] != question["id"]
        assert await answered(client, question, {"result": {"roots": []}}) == 202  # nobody waits for it
        assert await answered(client, again, {"result": {"roots": [{"uri": "file:///srv/other"}]}}) == 202
        await until(lambda: conversation.roots_folder == "/srv/other")
        assert conversation.transport is None


async def test_a_client_whose_roots_change_often_is_asked_once_more(face: Face) -> None:
    async with with_roots(face) as client, streaming(client) as stream:
        conversation = conversation_of(face, client)
        first = await stream.next()
        for _ in range(5):
            await client.notify("notifications/roots/list_changed")
        await answered(client, first, {"result": {"roots": [{"uri": "file:///srv/old"}]}})
        second = await stream.next()
        await answered(client, second, {"result": {"roots": [{"uri": "file:///srv/new"}]}})
        await until(lambda: not conversation.asking_roots.locked())
        conversation.notify("notifications/tools/list_changed")
        assert (await stream.next())["method"] == "notifications/tools/list_changed"
        assert conversation.roots_folder == "/srv/new"


@pytest.mark.parametrize(
    "said",
    [{"error": {"code": -32601, "message": "no"}}, {"result": {"roots": "all"}}, {"result": None}, {"result": [1]}],
    ids=str,
)
async def test_a_client_that_does_not_tell_its_roots_has_none(face: Face, said: dict[str, Any]) -> None:
    async with with_roots(face) as client, streaming(client) as stream:
        assert await answered(client, await stream.next(), said) == 202
        assert (await client.call("echo", text="on"))["content"]
        assert conversation_of(face, client).roots_folder is None


@pytest.mark.parametrize(
    "uri",
    [
        "file://[x/",
        "file:///a%00b",
        "file:relative",
        "file://elsewhere/x",
        "file:",
        "http://[",
        "",
        "file:///" + "a/" * 1000,
        "file:///" + "a" * 5000,
    ],
    ids=lambda uri: uri[:20],
)
async def test_a_root_that_is_no_folder_of_this_machine_is_passed_over(face: Face, uri: str) -> None:
    async with with_roots(face) as client, streaming(client) as stream:
        conversation = conversation_of(face, client)
        for folder in ("/srv/first", "/srv/changed"):
            roots = [{"uri": uri}, {"uri": f"file://{folder}"}]
            assert await answered(client, await stream.next(), {"result": {"roots": roots}}) == 202
            await until(lambda folder=folder: conversation.roots_folder == folder)
            await client.notify("notifications/roots/list_changed")


async def test_who_lost_the_question_with_its_stream_is_asked_on_the_next(face: Face) -> None:
    async with with_roots(face) as client:
        async with streaming(client) as stream:
            await stream.next()
        await until(lambda: not conversation_of(face, client).streams.stands)
        async with streaming(client) as stream:
            assert (await stream.next())["method"] == "roots/list"


async def test_notices_and_cancelling_need_no_sdk(face: Face) -> None:
    async with face.raw("handshake") as client:
        for method in ("notifications/cancelled", "notifications/progress", "notifications/unheard_of"):
            assert (await client.notify(method, {"requestId": 99})).status_code == 202
        assert conversation_of(face, client).transport is None


@asynccontextmanager
async def calling(client: RawClient, tool: str, request: int) -> AsyncIterator[Stream]:
    """A call whose stream begins at once: in the direct lane by its progress, else in the SDK's, because of what only
    that knows."""
    meta = {"progressToken": 1} if tool == "report" else {f"{RESERVED}other": 1}
    params = {"name": tool, "arguments": {"text": "x"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": request, "method": "tools/call", "params": params}
    async with client.http.stream("POST", "/mcp", json=body, headers=client.headers("", {})) as response:
        yield Stream(response)


@pytest.mark.parametrize("tool", ["report", "wait"])
async def test_a_call_goes_on_while_its_client_follows_it_by_any_connection(
    face: Face, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setattr("serena_central.mcp_server.conversation.RESUMED_WITHIN_S", 0)
    async with face.raw("handshake") as client, AsyncExitStack() as broken:
        call = await broken.enter_async_context(calling(client, tool, 7))
        event = await call.opened()
        await broken.enter_async_context(streaming(client, event))
        async with streaming(client, event) as last:
            assert last.status == 200
            await broken.aclose()
            await client.call("echo", text="the server has seen that they are closed")
            await anyio.wait_all_tasks_blocked()
            face.tools.release.set()
            while "result" not in (answer := await last.next()):
                pass
    assert not answer["result"]["isError"]


async def test_an_id_that_is_used_again_is_another_stream(face: Face) -> None:
    async with face.raw("handshake") as client:
        async with calling(client, "echo", 7) as call:
            event = await call.opened()
            await call.next()
        async with calling(client, "wait", 7) as again:
            await again.opened()
            async with streaming(client, event) as late:
                assert (await late.next())["result"]["content"][0]["text"] == "x"
                with pytest.raises(anyio.EndOfStream):
                    await late.next()
            face.tools.release.set()
            assert (await again.next())["result"]["content"][0]["text"] == "done"


async def test_a_conversation_whose_transport_fails_ends_its_stream_and_holds_no_session(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("a defect of the SDK's loop")

    monkeypatch.setattr("serena_central.mcp_server.adapter.serve_loop", fail)
    async with face.raw("handshake") as client, streaming(client) as stream:
        session = face.sessions.get(conversation_of(face, client).session_id)
        assert session.holders == 1
        async with calling(client, "wait", 7):
            with pytest.raises(anyio.EndOfStream):
                await stream.next()
        await until(lambda: session.holders == 0)
