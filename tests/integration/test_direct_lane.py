"""The direct lane beside the SDK's: the same answers to the same messages; and what a stream is good for."""

import gc
import json
import weakref
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import anyio
import httpx
import pytest

from serena_central.mcp_server import direct_reply
from serena_central.mcp_server.protocol import RESERVED
from serena_central.mcp_server.sdk_lane import SdkLane
from tests.integration.test_mcp_endpoint import AUTHORIZED, ERAS, Face, a_face, until
from tests.support.mcp import HANDSHAKE, MODERN, Era, RawClient, messages_in, text_of

pytestmark = pytest.mark.anyio

META = "io.modelcontextprotocol/"


@pytest.fixture
async def direct() -> AsyncGenerator[Face]:
    async with a_face(lane="direct") as face:
        yield face


@pytest.fixture
async def sdk() -> AsyncGenerator[Face]:
    async with a_face(lane="sdk") as face:
        yield face


def is_direct(response: httpx.Response) -> bool:
    """In the handshake era the SDK answers by streams alone; in the modern one what is quick looks the same."""
    return response.headers["content-type"] == "application/json"


ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "grüße, 😀 and \u0000"}}

MESSAGES: dict[str, dict[str, Any]] = {
    "a call": {"method": "tools/call", "params": ECHO},
    "a call that fails": {"method": "tools/call", "params": {"name": "refuse", "arguments": {}}},
    "an answer that passes for JSON": {
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "[1]"}},
    },
    "half a surrogate pair": {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "\ud800"}}},
    "an unknown tool": {"method": "tools/call", "params": {"name": "none"}},
    "no tool": {"method": "tools/call", "params": {"arguments": {}}},
    "a tool that is no name": {"method": "tools/call", "params": {"name": 5}},
    "no parameters": {"method": "tools/call"},
    "no arguments": {"method": "tools/call", "params": {"name": "refuse"}},
    "arguments of null": {"method": "tools/call", "params": {"name": "refuse", "arguments": None}},
    "arguments as text": {"method": "tools/call", "params": {"name": "echo", "arguments": '{"text": "told"}'}},
    "arguments that are a list": {"method": "tools/call", "params": {"name": "echo", "arguments": [1]}},
    "an unknown member": {"method": "tools/call", "params": {**ECHO, "task": {"ttl": 5}}},
    "an id that is a text": {"id": "7", "method": "tools/call", "params": ECHO},
    "an id that is huge": {"id": 2**70, "method": "tools/call", "params": ECHO},
    "an id that is true": {"id": True, "method": "tools/call", "params": ECHO},
    "an id that is a fraction": {"id": 1.5, "method": "tools/call", "params": ECHO},
    "an id that is null": {"id": None, "method": "tools/call", "params": ECHO},
    "another version of JSON-RPC": {"jsonrpc": "1.0", "method": "tools/call", "params": ECHO},
    "a token for progress": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": 1}}},
    "a token that is a text": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": "p"}}},
    "a token that is true": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": True}}},
    "a token that is a fraction": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": 1.5}}},
    "a token that is null": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": None}}},
    "a token that is a list": {"method": "tools/call", "params": {**ECHO, "_meta": {"progressToken": [1]}}},
    "a token for the progress of a list": {"method": "tools/list", "params": {"_meta": {"progressToken": 1}}},
    "meta that is no object": {"method": "tools/call", "params": {**ECHO, "_meta": "x"}},
    "meta of others": {"method": "tools/call", "params": {**ECHO, "_meta": {"claudecode/toolUseId": "t-1"}}},
    "a log level": {"method": "tools/call", "params": {**ECHO, "_meta": {f"{META}logLevel": "debug"}}},
    "a log level that is none": {"method": "tools/call", "params": {**ECHO, "_meta": {f"{META}logLevel": "loud"}}},
    "another protocol version": {
        "method": "tools/call",
        "params": {**ECHO, "_meta": {f"{META}protocolVersion": "2099-01-01"}},
    },
    "a client that is no client": {
        "method": "tools/call",
        "params": {**ECHO, "_meta": {f"{META}clientInfo": {"name": 5}}},
    },
    "capabilities that are none": {
        "method": "tools/call",
        "params": {**ECHO, "_meta": {f"{META}clientCapabilities": "all"}},
    },
    "no capabilities": {"method": "tools/call", "params": {**ECHO, "_meta": {f"{META}clientCapabilities": None}}},
    "the list": {"method": "tools/list"},
    "the list of resources": {"method": "resources/list"},
    "the list of templates": {"method": "resources/templates/list", "params": {}},
    "the list of prompts": {"method": "prompts/list"},
    "a list of prompts by name": {"method": "prompts/list", "params": {"name": "onboard"}},
    "the next page of prompts": {"method": "prompts/list", "params": {"cursor": "x"}},
    "the list with parameters of null": {"method": "tools/list", "params": None},
    "the list's next page": {"method": "tools/list", "params": {"cursor": "x"}},
    "a ping": {"method": "ping"},
    "what the server is": {"method": "server/discover"},
    "what the server is, by name": {"method": "server/discover", "params": {"name": "x"}},
    "a stream of nothing that is known": {"method": "subscriptions/listen"},
    "a stream of no notices": {"method": "subscriptions/listen", "params": {"notifications": "all"}},
    "a stream of notices that are none": {
        "method": "subscriptions/listen",
        "params": {"notifications": {"resourceSubscriptions": "all"}},
    },
    "a ping of a level": {"method": "ping", "params": {"level": "info"}},
    "the level of logs": {"method": "logging/setLevel", "params": {"level": "warning"}},
    "a level that is none": {"method": "logging/setLevel", "params": {"level": "loud"}},
    "no level": {"method": "logging/setLevel"},
    "a level and a name": {"method": "logging/setLevel", "params": {"level": "info", "name": "x"}},
    "a call with a level": {"method": "tools/call", "params": {**ECHO, "level": "info"}},
    "an unknown method": {"method": "tools/forget"},
    "a log level of a list": {"method": "tools/list", "params": {"_meta": {f"{META}logLevel": "debug"}}},
    "a prompt": {"method": "prompts/get", "params": {"name": "onboarding"}},
    "a prompt with arguments": {
        "method": "prompts/get",
        "params": {"name": "plan_refactoring", "arguments": {"goal": "grüße", "path": "a"}},
    },
    "a prompt that lacks an argument": {"method": "prompts/get", "params": {"name": "plan_refactoring"}},
    "a prompt with numbers": {"method": "prompts/get", "params": {"name": "onboarding", "arguments": {"project": 5}}},
    "arguments of a prompt that are null": {
        "method": "prompts/get",
        "params": {"name": "onboarding", "arguments": None},
    },
    "an unknown prompt": {"method": "prompts/get", "params": {"name": "none"}},
    "a prompt of another server": {"method": "prompts/get", "params": {"name": "docs__none"}},
    "no prompt": {"method": "prompts/get"},
    "a prompt and a URI": {"method": "prompts/get", "params": {"name": "onboarding", "uri": "x"}},
    "a resource": {"method": "resources/read", "params": {"uri": "serena://projects/shop/memories/a%C3%A4"}},
    "a resource as it is spoken": {"method": "resources/read", "params": {"uri": "serena://projects/shop/memories/ä"}},
    "a resource that looks encoded": {"method": "resources/read", "params": {"uri": "=?base64?YQ==?="}},
    "an overview": {"method": "resources/read", "params": {"uri": "serena://projects/shop/overview"}},
    "an unknown resource": {"method": "resources/read", "params": {"uri": "serena://none"}},
    "a resource of others": {"method": "resources/read", "params": {"uri": "docs://none"}},
    "a resource that is no text": {"method": "resources/read", "params": {"uri": 5}},
    "no resource": {"method": "resources/read", "params": {}},
    "a subscription": {"method": "resources/subscribe", "params": {"uri": "serena://projects/shop/memories/a"}},
    "a subscription to nothing": {"method": "resources/subscribe"},
    "the end of a subscription": {"method": "resources/unsubscribe", "params": {"uri": "serena://projects/none"}},
    "a completion": {
        "method": "completion/complete",
        "params": {"ref": {"type": "ref/prompt", "name": "onboarding"}, "argument": {"name": "project", "value": ""}},
    },
    "a completion of a template": {
        "method": "completion/complete",
        "params": {
            "ref": {"type": "ref/resource", "uri": "serena://projects/{project}/overview"},
            "argument": {"name": "memory", "value": "a"},
            "context": {"arguments": {"project": "shop"}},
        },
    },
    "a completion of nothing": {
        "method": "completion/complete",
        "params": {"ref": {"type": "ref/none"}, "argument": {"name": "a", "value": ""}},
    },
    "a completion without an argument": {
        "method": "completion/complete",
        "params": {"ref": {"type": "ref/prompt", "name": "onboarding"}},
    },
    "a call that is sent again": {
        "method": "tools/call",
        "params": {**ECHO, "inputResponses": {"x": {"action": "accept", "content": {"y": 1}}}},
    },
    "a call with roots": {
        "method": "tools/call",
        "params": {**ECHO, "inputResponses": {"roots": {"roots": [{"uri": "file:///"}]}}},
    },
    "a call with roots that are none": {
        "method": "tools/call",
        "params": {**ECHO, "inputResponses": {"roots": {"roots": [{"uri": "https://a"}]}}},
    },
    "a call with an answer that is none": {
        "method": "tools/call",
        "params": {**ECHO, "inputResponses": {"x": {"y": 1}}},
    },
    "a call with a state": {"method": "tools/call", "params": {**ECHO, "requestState": "v1.x"}},
    "a state that is no text": {"method": "tools/call", "params": {**ECHO, "requestState": [1]}},
    "a list with a state": {"method": "prompts/list", "params": {"requestState": False}},
    "a subscription with a state": {"method": "resources/subscribe", "params": {"uri": "x:", "requestState": 0}},
    "a prompt with a state": {"method": "prompts/get", "params": {"name": "onboarding", "requestState": "äöü."}},
}

PLAIN = (
    *("a call", "a call that fails", "an answer that passes for JSON", "an unknown tool", "no arguments"),
    *("the list", "the list of resources", "the list of templates", "the list of prompts"),
    *("a prompt", "a prompt with arguments", "a prompt that lacks an argument", "an unknown prompt"),
    *("a prompt of another server", "a resource", "a resource as it is spoken", "a resource that looks encoded"),
    *("an overview", "an unknown resource", "a resource of others"),
    *("a completion", "a completion of a template"),
)
"""Messages that are exactly as the protocol says, in both eras."""

PLAIN_IN: Mapping[Era, tuple[str, ...]] = {
    "handshake": ("a subscription", "the end of a subscription", "a ping", "the level of logs"),
    "modern": ("a call that is sent again", "a call with roots", "a call with a state", "a log level"),
}
"""Those of one era."""


def request(client: RawClient, message: Mapping[str, Any], headers: Mapping[str, str]) -> httpx.Request:
    """The message as it stands, with what makes it one of its era where it says nothing else."""
    params = message.get("params")
    method, said = message["method"], params if isinstance(params, dict) else {}
    if client.era == "modern":
        meta = said.get("_meta", {})
        envelope = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
        info = {f"{META}clientInfo": {"name": "raw", "version": "1"}}
        params = {**said, "_meta": {**envelope, **info, **meta} if isinstance(meta, dict) else meta}
    body = {"jsonrpc": "2.0", "id": 7, **message, **({} if params is None else {"params": params})}
    named = {key: str(said[key]) for key in ("name", "uri") if key in said}
    sent = {"content-type": "application/json", **client.headers(method, named), **headers}
    return client.http.build_request("POST", "/mcp", content=json.dumps(body), headers=sent)


async def answers_of(
    face: Face, era: Era, message: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[int | None, list[dict[str, Any]]]:
    """The messages of an answer, and the status where the eras' wires don't differ in it by themselves."""
    async with face.raw(era) as client:
        response = await client.http.send(request(client, message, headers))
    return response.status_code, messages_in(response.text)


@pytest.mark.parametrize("era", ERAS)
async def test_both_lanes_answer_the_same(direct: Face, sdk: Face, era: Era) -> None:
    for name, message in MESSAGES.items():
        assert await answers_of(direct, era, message, {}) == await answers_of(sdk, era, message, {}), name


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_as_the_protocol_says_needs_no_sdk(
    direct: Face, monkeypatch: pytest.MonkeyPatch, era: Era
) -> None:
    async def loaded(_lane: SdkLane) -> Any:
        raise AssertionError("a plain request came to the SDK")

    monkeypatch.setattr(SdkLane, "loaded", loaded)
    for name in (*PLAIN, *PLAIN_IN[era]):
        status, answers = await answers_of(direct, era, MESSAGES[name], {})
        assert status in (200, 400), name
        assert len(answers) == 1, name


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "headers",
    [
        {"accept": "application/json"},
        {"accept": "text/event-stream"},
        {"accept": "text/html"},
        {"accept": "*/*"},
        {"accept": "application/*;q=0.5, text/*"},
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=utf-8"},
        {"mcp-protocol-version": "1999-01-01"},
        {"mcp-method": "tools/list"},
        {"mcp-name": "refuse"},
        {"mcp-name": "=?base64?ZWNobw==?="},
        {"mcp-name": "=?base64?ZWNobw?="},
        {"mcp-name": "écho".encode()},
        {"mcp-param-text": "x"},
        {"mcp-session-id": "unknown"},
    ],
    ids=lambda headers: " ".join(f"{name} {value!s}" for name, value in headers.items()),
)
async def test_both_lanes_check_headers_alike(direct: Face, sdk: Face, era: Era, headers: dict[str, str]) -> None:
    message = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
    assert await answers_of(direct, era, message, headers) == await answers_of(sdk, era, message, headers)


async def test_a_routing_header_that_comes_twice_is_refused_in_both_lanes(direct: Face, sdk: Face) -> None:
    for face in (direct, sdk):
        async with face.raw("modern") as client:
            sent = client.request("tools/call", ECHO)
            twice = httpx.Headers([*sent.headers.multi_items(), ("mcp-name", "echo")])
            response = await client.http.post("/mcp", content=sent.content, headers=twice)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_results_are_those_of_the_negotiated_version(direct: Face, sdk: Face, version: str) -> None:
    said: list[dict[str, Any]] = []
    for face in (direct, sdk):
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED) as http:
            client = RawClient(http, "handshake")
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            opened = await client.send("initialize", params)
            client.session_id = opened.headers["mcp-session-id"]
            await client.notify("notifications/initialized")
            response = await client.send("tools/call", {"name": "echo", "arguments": {"text": "[1]"}})
            assert is_direct(response) == (face is direct)
            said += messages_in(response.text)
            for name in (*PLAIN, *PLAIN_IN["handshake"]):
                said += messages_in((await client.send(MESSAGES[name]["method"], MESSAGES[name].get("params"))).text)
    half = len(said) // 2
    assert said[:half] == said[half:]


TRACED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.mark.parametrize(
    ("meta", "is_plain"),
    [(TRACED, True), ({"progressToken": 1}, True), ({"progressToken": [1]}, False), ({f"{RESERVED}x": 1}, False)],
)
async def test_a_client_that_says_more_beside_its_handshake_begins_like_any_other(
    direct: Face, sdk: Face, monkeypatch: pytest.MonkeyPatch, meta: dict[str, Any], is_plain: bool
) -> None:
    said: list[Any] = []
    came: list[SdkLane] = []
    loaded = SdkLane.loaded

    async def spied(lane: SdkLane) -> Any:
        came.append(lane)
        return await loaded(lane)

    for face in (sdk, direct):
        if face is direct:
            monkeypatch.setattr(SdkLane, "loaded", spied)
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED) as http:
            client = RawClient(http, "handshake")
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            opened = await client.send("initialize", {**params, "_meta": meta})
            said.append((opened.status_code, messages_in(opened.text)))
    assert said[0] == said[1]
    assert (came == []) == is_plain


async def test_what_needs_a_stream_goes_through_the_sdk(direct: Face) -> None:
    async with direct.raw("handshake") as client:
        assert is_direct(await client.send("tools/call", ECHO))
        assert is_direct(await client.send("tools/list"))
        assert is_direct(await client.send("resources/list"))
        assert is_direct(await client.send("resources/templates/list"))
        assert is_direct(await client.send("prompts/list"))
        assert is_direct(await client.send("ping"))
        assert is_direct(await client.send("tools/call", {**ECHO, "_meta": {"progressToken": 1}}))
        assert not is_direct(await client.send("tools/call", {**ECHO, "_meta": {"progressToken": [1]}}))
        assert not is_direct(await client.send("prompts/get", {"name": 5}))
        assert is_direct(await client.send("prompts/get", {"name": "none"}))
        assert is_direct(await client.send("logging/setLevel", {"level": "info"}))
        assert is_direct(await client.send("tools/call", ECHO))


async def test_before_the_handshake_nothing_is_plain(direct: Face) -> None:
    async with httpx.AsyncClient(base_url=direct.url, headers=AUTHORIZED) as http:
        client = RawClient(http, "handshake")
        assert (await client.send("tools/call", ECHO)).status_code == 400


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_answer_comes_by_a_stream_that_is_kept_open(
    direct: Face, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_reply, "STREAM_AFTER_S", 0)
    monkeypatch.setattr(direct_reply, "PING_S", 0.01)
    async with direct.raw(era) as client:
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        with anyio.fail_after(30):
            async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
                assert response.headers["content-type"] == "text/event-stream"
                lines = response.aiter_lines()
                while not (await anext(lines)).startswith(": ping"):
                    pass
                direct.tools.release.set()
                (answer,) = messages_in("\n".join([line async for line in lines]))
    assert text_of(answer["result"]) == "done"


def reporting(client: RawClient, token: int | str = "p") -> httpx.Request:
    return client.request("tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": token}})


def told(token: int | str) -> dict[str, Any]:
    """The news of the tool `report`, of which only the newest is sent."""
    params = {"progressToken": token, "progress": 100.0, "total": 100.0, "message": "step 2"}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("token", [0, 7, "", "p"])
async def test_both_lanes_send_the_same_news_before_the_answer(
    direct: Face, sdk: Face, era: Era, token: int | str
) -> None:
    said: list[list[dict[str, Any]]] = []
    for face in (direct, sdk):
        async with face.raw(era) as client:
            sent = reporting(client, token)
            with anyio.fail_after(30):
                async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
                    assert response.headers["content-type"].startswith("text/event-stream")
                    came: list[str] = []
                    async for line in response.aiter_lines():
                        came.append(line)
                        if "step 2" in line:
                            face.tools.release.set()
            said.append(messages_in("\n".join(came)))
    assert said[0] == said[1]
    assert said[0][0] == told(token)
    assert text_of(said[0][-1]["result"]) == "reported"


async def test_news_need_no_sdk() -> None:
    async with a_face(lane="direct") as face, face.raw("handshake") as client:
        sent = reporting(client)
        with anyio.fail_after(30):
            async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
                came: list[str] = []
                async for line in response.aiter_lines():
                    came.append(line)
                    if "step 2" in line:
                        face.tools.release.set()
        assert [message.get("method") for message in messages_in("\n".join(came))] == ["notifications/progress", None]
        conversation = face.transports.conversation(str(client.session_id))
        assert conversation is not None
        assert conversation.transport is None


@pytest.mark.parametrize("version", ["2025-06-18", HANDSHAKE])
async def test_who_has_had_news_can_come_back_for_the_rest(direct: Face, version: str) -> None:
    async with httpx.AsyncClient(base_url=direct.url, headers=AUTHORIZED, timeout=30) as http:
        client = RawClient(http, "handshake", version=version)
        await client.open()
        sent, ids = reporting(client), list[str]()
        with anyio.fail_after(30):
            async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
                async for line in response.aiter_lines():
                    if line.startswith("id: "):
                        ids.append(line.removeprefix("id: "))
                    if "step 2" in line:
                        break
            await anyio.sleep(0.2)  # the server has noticed, and waits
            came: list[dict[str, Any]] = []
            headers = client.headers("", {}) | {"last-event-id": ids[0]}
            async with client.http.stream("GET", "/mcp", headers=headers) as response:
                direct.tools.release.set()
                came += messages_in("\n".join([line async for line in response.aiter_lines()]))
    assert len(ids) == len(came) == (2 if version == HANDSHAKE else 1), "an event of its own opens the stream"
    assert came[:-1] == [told("p")][: len(came) - 1]
    assert text_of(came[-1]["result"]) == "reported"


@pytest.mark.parametrize("era", ERAS)
async def test_news_of_what_a_call_has_left_running_come_too_late(direct: Face, era: Era) -> None:
    late: list[Any] = []
    real = direct.tools.call

    async def keeping(*given: Any, on_progress: Any, **more: Any) -> Any:
        late.append(on_progress)
        return await real(*given, on_progress=on_progress, **more)

    direct.tools.call = keeping
    async with direct.raw(era) as client:
        response = await client.send("tools/call", {**ECHO, "_meta": {"progressToken": 1}})
        assert is_direct(response)
        late[0]("still at it", None)
        await anyio.wait_all_tasks_blocked()
        assert (await client.send("tools/call", ECHO)).status_code == 200


async def test_a_long_answer_is_resumed_on_another_connection(direct: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_reply, "STREAM_AFTER_S", 0)
    async with direct.raw("handshake") as client:
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        with anyio.fail_after(30):
            async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
                first = await anext(response.aiter_lines())
            headers = client.headers("", {}) | {"last-event-id": first.removeprefix("id: ")}
            async with client.http.stream("GET", "/mcp", headers=headers) as response:
                direct.tools.release.set()
                (answer,) = messages_in("\n".join([line async for line in response.aiter_lines()]))
            again = await client.http.get("/mcp", headers=headers)
    assert text_of(answer["result"]) == "done"
    assert messages_in(again.text) == [answer]


async def test_who_hangs_up_before_a_stream_began_cannot_come_back_so_the_call_ends(direct: Face) -> None:
    async with direct.raw("handshake") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call, "wait")
            await direct.tools.started.acquire()
            tasks.cancel_scope.cancel()
        await until(lambda: direct.tools.ended)
    assert direct.tools.ended == ["cancelled"]


async def test_a_cancelled_call_ends_without_an_answer(direct: Face) -> None:
    async with direct.raw("handshake") as client, anyio.create_task_group() as tasks:
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        responses: list[httpx.Response] = []

        async def call() -> None:
            responses.append(await client.http.send(sent))

        tasks.start_soon(call)
        await direct.tools.started.acquire()
        await client.notify("notifications/cancelled", {"requestId": json.loads(sent.content)["id"]})
        await until(lambda: responses)
    assert direct.tools.ended == ["cancelled"]
    assert (responses[0].status_code, responses[0].text) == (200, "")


async def test_a_conversation_that_ends_takes_its_calls_with_it(direct: Face) -> None:
    async with direct.raw("handshake") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.send, "tools/call", {"name": "wait", "arguments": {}})
        await direct.tools.started.acquire()
        await client.http.delete("/mcp", headers=client.headers("", {}))
        await until(lambda: direct.tools.ended)
    assert direct.tools.ended == ["cancelled"]


async def test_a_conversation_that_ended_is_not_kept_as_long_as_its_session(direct: Face) -> None:
    async with direct.raw("handshake") as client:
        await client.ask("resources/list")
        await client.ask("resources/subscribe", {"uri": "serena://x"})
        conversation = direct.transports.conversation(str(client.session_id))
        assert conversation is not None
        session, kept = conversation.session_id, weakref.ref(conversation)
        del conversation
        await client.http.delete("/mcp", headers=client.headers("", {}))
    with anyio.fail_after(30):
        while kept() is not None:
            await anyio.sleep(0.01)
            gc.collect()
    assert direct.sessions.get(session)


async def test_what_waited_while_its_client_said_goodbye_is_refused(direct: Face) -> None:
    async with direct.raw("handshake") as client, anyio.create_task_group() as tasks:
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        statuses: list[int] = []

        async def send() -> None:
            response = await client.http.post("/mcp", content=sent.content, headers=sent.headers)
            statuses.append(response.status_code)

        conversation = direct.transports.conversation(str(client.session_id))
        assert conversation is not None
        tasks.start_soon(send)
        await direct.tools.started.acquire()
        tasks.start_soon(send)
        await until(lambda: conversation.turns.queued(str(json.loads(sent.content)["id"])) == 2)
        await client.http.delete("/mcp", headers=client.headers("", {}))
        await until(lambda: len(statuses) == 2)
    assert statuses == [200, 404]
    assert direct.sessions.get(conversation.session_id).ended


async def test_an_id_that_is_used_again_waits_for_the_first(direct: Face) -> None:
    async with direct.raw("handshake") as client, anyio.create_task_group() as tasks:
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        said: list[str] = []

        async def call(text: str) -> None:
            body = json.loads(sent.content)
            if text:
                body["params"] = {"name": "echo", "arguments": {"text": text}}
            response = await client.http.post("/mcp", json=body, headers=client.headers("", {}))
            said.append(text_of(messages_in(response.text)[0]["result"]))

        tasks.start_soon(call, "")
        await direct.tools.started.acquire()
        tasks.start_soon(call, "second")
        conversation = direct.transports.conversation(str(client.session_id))
        assert conversation is not None
        await until(lambda: conversation.turns.queued(str(json.loads(sent.content)["id"])) == 2)
        assert said == []
        direct.tools.release.set()
        await until(lambda: len(said) == 2)
    assert said == ["done", "second"]


async def test_a_client_that_cannot_resume_still_gets_its_long_answer(
    direct: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_reply, "STREAM_AFTER_S", 0)
    async with httpx.AsyncClient(base_url=direct.url, headers=AUTHORIZED, timeout=30) as http:
        client = RawClient(http, "handshake")
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        client.session_id = (await client.send("initialize", params)).headers["mcp-session-id"]
        sent = client.request("tools/call", {"name": "wait", "arguments": {}})
        async with client.http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
            lines = response.aiter_lines()
            assert (await anext(lines)).startswith(": ping")
            direct.tools.release.set()
            (answer,) = messages_in("\n".join([line async for line in lines]))
    assert text_of(answer["result"]) == "done"
    assert HANDSHAKE > "2025-06-18"
