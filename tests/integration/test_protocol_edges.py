"""What the protocol says about messages at its edges: ids, versions, batches, media types, paths, subscriptions."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import httpx
import pytest

from tests.support.central import RunningCentral, running_central
from tests.support.mcp import ACCEPT, MODERN, RawClient, messages_in

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path_factory.mktemp("edges")) as running:
        yield running


def ping(number: Any = 1, method: str = "ping") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method}


async def begun(http: httpx.AsyncClient, version: str) -> dict[str, str]:
    """The headers of a session that asked for this revision."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    answer = await http.post("/mcp", json=ping() | {"method": "initialize", "params": params}, headers=ACCEPT)
    assert messages_in(answer.text)[-1]["result"]["protocolVersion"] == version
    headers = ACCEPT | {"mcp-session-id": answer.headers["mcp-session-id"]}
    await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


@pytest.mark.parametrize("number", [None, 1.5, True, [1], {"a": 1}])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_request_with_no_proper_id_is_refused(central: RunningCentral, era: Any, number: Any) -> None:
    async with central.raw(era) as client:
        request = client.request("tools/list")
        body = json.loads(request.content) | {"id": number}
        answer = await client.http.post("/mcp", json=body, headers=client.headers("tools/list", {}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize(
    "message",
    [
        "null",
        "7",
        '"x"',
        '{"id": 1, "method": "ping"}',
        '{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": 1}',
        '{"jsonrpc": "2.0", "id": 1, "method": 7}',
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}',
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "x"}',
    ],
)
async def test_what_is_no_message_is_an_invalid_request_in_one_sentence(central: RunningCentral, message: str) -> None:
    async with central.raw("handshake") as client:
        headers = client.headers("", {}) | {"content-type": "application/json"}
        answer = await client.http.post("/mcp", content=message, headers=headers)
        broken = await client.http.post("/mcp", content=message[:-1] + "\0", headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32600)
    assert error["message"].endswith(".")
    assert "\n" not in error["message"]
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
async def test_a_cursor_of_no_list_is_refused(central: RunningCentral, era: Any, method: str) -> None:
    async with central.raw(era) as client:
        answer = await client.ask(method, {"cursor": "nonsense"})
        assert "result" in await client.ask(method, {})
    assert answer["error"]["code"] == -32602


async def test_a_version_that_nobody_knows_is_answered_with_those_that_are_known(central: RunningCentral) -> None:
    async with central.raw("handshake") as client:
        headers = client.headers("", {}) | {"mcp-protocol-version": "1999-01-01"}
        answer = await client.http.post("/mcp", json=ping(), headers=headers)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert "1999-01-01" in error["message"]
    assert {"2025-06-18", MODERN} <= set(error["data"]["supported"])


async def test_the_revision_that_has_batches_is_served_batches(central: RunningCentral) -> None:
    async with central.http() as http:
        headers = await begun(http, "2025-03-26")
        note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        both = await http.post("/mcp", json=[ping(1), note, ping(2, "tools/list"), ping(None)], headers=headers)
        answers = {message["id"]: message for message in messages_in(both.text)}
        notes = await http.post("/mcp", json=[note, note], headers=headers)
        wrong = [await http.post("/mcp", json=many, headers=headers) for many in ([], [ping(n) for n in range(101)])]
    assert both.headers["content-type"] == "text/event-stream"
    assert answers[1]["result"] == {}
    assert len(answers[2]["result"]["tools"]) > 20
    assert answers[None]["error"]["code"] == -32600
    assert notes.status_code == 202
    assert [one.status_code for one in wrong] == [400, 400]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_other_revisions_have_no_batches(central: RunningCentral, version: str) -> None:
    async with central.http() as http:
        answer = await http.post("/mcp", json=[ping()], headers=await begun(http, version))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert "2025-03-26" in answer.json()["error"]["message"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_another_media_type_is_415(central: RunningCentral, era: Any, kind: str) -> None:
    async with central.raw(era) as client:
        headers = client.headers("tools/list", {}) | {"content-type": kind}
        answer = await client.http.post("/mcp", content=client.request("tools/list").content, headers=headers)
    assert answer.status_code == 415


async def test_the_path_may_end_with_a_slash(central: RunningCentral) -> None:
    async with central.raw("handshake") as client:
        answer = await client.http.post("/mcp/", json=ping(), headers=client.headers("", {}))
    assert (answer.status_code, messages_in(answer.text)[-1]["result"]) == (200, {})


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/mcp/.well-known/openid-configuration",
        "/register",
    ],
)
async def test_who_looks_for_oauth_is_told_that_there_is_none(central: RunningCentral, path: str) -> None:
    async with httpx.AsyncClient(base_url=central.url) as stranger, central.http() as known:
        for answer in (await stranger.get(path), await stranger.post(path, json={}), await known.get(path)):
            assert answer.status_code == 404
        assert (await stranger.get("/api/v1/sessions")).status_code == 401


async def test_a_modern_client_hears_that_its_tools_have_changed(central: RunningCentral) -> None:
    async with central.raw("modern", x_serena_session="a") as client, central.raw("modern", x_serena_session="b") as b:
        request = client.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        with anyio.fail_after(30):
            answer = await client.http.send(request, stream=True)
            lines = answer.aiter_lines()
            assert (await message(lines))["method"] == "notifications/subscriptions/acknowledged"
            await b.call("switch_modes", modes=["planning"])  # another session's
            await RawClient.call(client, "switch_modes", modes=["planning", "no-memories"])
            assert (await message(lines))["method"] == "notifications/tools/list_changed"
            await answer.aclose()


async def message(lines: Any) -> dict[str, Any]:
    async for line in lines:
        if line.startswith("data: {"):
            return json.loads(line[6:])
    raise EOFError
