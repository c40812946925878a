"""The MCP face over real HTTP, in both eras, by the official client and by hand."""

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import anyio
import httpx
import pytest
import uvicorn
from mcp.client import Client
from starlette.applications import Starlette
from starlette.routing import Route

from serena_central.access.auth import AuthGate
from serena_central.access.token import Token
from serena_central.core.events import EventBus
from serena_central.mcp_server import conversation
from serena_central.mcp_server.adapter import Adapter
from serena_central.mcp_server.endpoint import McpEndpoint
from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.transports import HandshakeTransports, TransportPolicy
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import SessionState
from tests.support.mcp import ACCEPT, Era, RawClient, ScriptedTools, messages_in, sdk_client, text_of
from tests.support.serving import serving

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["handshake", "modern"]

Lane = Literal["direct", "sdk"]
"""`direct`: with the SDK loaded by the first message that needs it."""

LANES: tuple[Lane, ...] = get_args(Lane)
"""How plain requests are served: by the direct lane, or as all others, through the SDK."""
TOKEN = Token(b"t" * 40)
AUTHORIZED = {"authorization": TOKEN.header()}


class Nobody:
    """No project is interested in sessions here."""

    def attach(self, root: str) -> None: ...
    def detach(self, root: str) -> None: ...


class Remembered:
    """Openings in memory, as the store keeps them across restarts."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, str], bytes] = {}

    def remember(self, conversation_id: str, session_id: str, body: bytes) -> None:
        self.bodies[conversation_id, TOKEN.credential] = body

    def forget(self, conversation_id: str, session_id: str) -> None:
        self.bodies.pop((conversation_id, TOKEN.credential), None)

    async def recall(self, conversation_id: str, credential: str) -> bytes | None:
        return self.bodies.get((conversation_id, credential))


@dataclass
class Face:
    """The MCP face of a server that runs, with scripted tools behind it."""

    url: str
    tools: ScriptedTools
    sessions: SessionManager
    endpoint: McpEndpoint
    transports: HandshakeTransports
    subscriptions: Subscriptions

    @asynccontextmanager
    async def raw(self, era: Era, *, name: str = "raw", **headers: str) -> AsyncGenerator[RawClient]:
        sent = {key.replace("_", "-"): value.encode() for key, value in (AUTHORIZED | headers).items()}
        async with httpx.AsyncClient(base_url=self.url, headers=sent, timeout=30) as http:
            client = RawClient(http, era, name=name)
            await client.open()
            yield client

    def sdk(self, era: Era, **options: Any) -> Any:
        return sdk_client(self.url, era, AUTHORIZED | options.pop("headers", {}), **options)


@asynccontextmanager
async def a_face(
    *, openings: Remembered | None = None, policy: TransportPolicy | None = None, lane: Lane = "direct"
) -> AsyncGenerator[Face]:
    tools = ScriptedTools()
    sessions = SessionManager(bus=EventBus(), interest=Nobody())
    adapter = Adapter(sessions=sessions, caller=tools, version="1")
    direct = None if lane == "sdk" else adapter.direct
    sdk = SdkLane(lambda: adapter)
    transports = HandshakeTransports(sdk, sessions=sessions, openings=openings, policy=policy, direct=direct)
    endpoint = McpEndpoint(sdk, transports, direct=direct)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            await tasks.start(endpoint.run)
            yield
            tasks.cancel_scope.cancel()

    app = Starlette(routes=[Route("/mcp", endpoint)], lifespan=lifespan)
    with anyio.fail_after(60):
        config = uvicorn.Config(AuthGate(app, token=TOKEN), log_config=None, access_log=False, lifespan="on")
        async with serving(uvicorn.Server(config)) as url:
            yield Face(url, tools, sessions, endpoint, transports, adapter.subscriptions)


@pytest.fixture(params=LANES)
async def face(request: pytest.FixtureRequest) -> AsyncGenerator[Face]:
    """Every test that uses it shows that all lanes do the same."""
    async with a_face(lane=request.param) as running:
        yield running


async def until(condition: Any) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.005)


@pytest.mark.parametrize("era", ERAS)
class TestBothEras:
    async def test_the_official_client_lists_and_calls_tools(self, face: Face, era: Era) -> None:
        async with face.sdk(era) as client:
            listed = await client.list_tools()
            assert "echo" in [tool.name for tool in listed.tools]
            result = await client.call_tool("echo", {"text": "grüße"})
        assert result.content[0].text == "grüße"
        assert not result.is_error
        assert result.meta["tokenEstimate"] == 1

    async def test_a_tools_listing_tells_what_it_needs_and_whether_it_changes_anything(
        self, face: Face, era: Era
    ) -> None:
        async with face.raw(era) as client:
            result = (await client.ask("tools/list"))["result"]
        echo = next(tool for tool in result["tools"] if tool["name"] == "echo")
        assert set(echo) == {"name", "title", "description", "inputSchema", "annotations"}
        assert echo["title"] == "Echo"
        assert echo["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
        assert "text" in echo["inputSchema"]["properties"]

    async def test_errors_of_ours_are_tool_results_that_say_what_to_do(self, face: Face, era: Era) -> None:
        async with face.raw(era) as client:
            result = await client.call("refuse")
        assert result["isError"]
        assert "Foo/bar" in text_of(result)

    async def test_an_unknown_tool_is_a_tool_error(self, face: Face, era: Era) -> None:
        async with face.raw(era) as client:
            result = await client.call("no_such_tool")
        assert result["isError"]
        assert "no_such_tool" in text_of(result)

    async def test_a_bug_is_logged_under_an_id_and_its_inside_stays_inside(
        self, face: Face, era: Era, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.ERROR):
            async with face.raw(era) as client:
                result = await client.call("break")
        assert result["isError"]
        assert "secret" not in text_of(result)
        trace = next(record for record in caplog.records if record.exc_info)
        assert trace.args is not None
        assert str(trace.args[0]) in text_of(result)

    async def test_two_clients_at_once_are_two_sessions(self, face: Face, era: Era) -> None:
        async with face.raw(era, x_serena_session="one") as one, face.raw(era, x_serena_session="two") as two:
            seen: dict[str, set[str]] = {"one": set(), "two": set()}

            async def ask(client: RawClient, label: str) -> None:
                for _ in range(20):
                    seen[label].add(json.loads(text_of(await client.call("whoami")))["session"])

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask, one, "one")
                    tasks.start_soon(ask, two, "two")
        assert seen == {"one": {"one"}, "two": {"two"}}

    async def test_headers_and_client_info_reach_the_session(self, face: Face, era: Era) -> None:
        async with face.raw(
            era, name="codex", x_serena_session="proxy-1", x_serena_project="/tmp/bücher", x_serena_context="codex"
        ) as client:
            known = json.loads(text_of(await client.call("whoami")))
        assert known == {
            "session": "proxy-1",
            "identified_by": "explicit",
            "client": "codex",
            "folder": "/tmp/bücher",
            "context": "codex",
        }

    async def test_a_killed_session_gets_a_clear_error_and_its_running_call_ends(self, face: Face, era: Era) -> None:
        async with face.raw(era, x_serena_session="victim") as client, anyio.create_task_group() as tasks:
            results: list[dict[str, Any]] = []

            async def wait() -> None:
                results.append(await client.call("wait"))

            tasks.start_soon(wait)
            await face.tools.started.acquire()
            face.sessions.terminate("victim", "a person")
            await until(lambda: results)
            assert results[0]["isError"]
            assert "a person" in text_of(results[0])
            assert face.tools.ended == ["cancelled"]

            later = await client.call("echo", text="hello")
            assert later["isError"]
            assert "terminated by a person" in text_of(later)
            listing = await client.ask("tools/list")
            assert "terminated by a person" in listing["error"]["message"]

    async def test_hanging_up_on_a_call_cancels_it_when_nobody_comes_back(
        self, face: Face, era: Era, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conversation, "RESUMED_WITHIN_S", 0)
        async with face.raw(era) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call, "wait")
                await face.tools.started.acquire()
                tasks.cancel_scope.cancel()
            await until(lambda: face.tools.ended)
        assert face.tools.ended == ["cancelled"]

    async def test_the_official_clients_cancel_reaches_the_tool(self, face: Face, era: Era) -> None:
        async with face.sdk(era) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait", {})
                await face.tools.started.acquire()
                tasks.cancel_scope.cancel()
            await until(lambda: face.tools.ended)
            assert face.tools.ended == ["cancelled"]
            assert (await client.call_tool("echo", {"text": "still here"})).content[0].text == "still here"

    async def test_progress_reaches_a_client_that_asked_for_it_throttled_and_growing(
        self, face: Face, era: Era
    ) -> None:
        seen: list[tuple[float, str | None]] = []

        async def note(value: float, total: float | None, message: str | None) -> None:
            assert total == 100
            seen.append((value, message))
            face.tools.release.set()

        async with face.sdk(era) as client:
            result = await client.call_tool("report", {}, progress_callback=note)
        assert result.content[0].text == "reported"
        assert [message for _, message in seen] == ["step 2"]
        assert seen[0][0] == 100

    async def test_nobody_gets_progress_unasked(self, face: Face, era: Era) -> None:
        face.tools.release.set()
        async with face.raw(era) as client:
            response = await client.send("tools/call", {"name": "report", "arguments": {}})
        assert len(messages_in(response.text)) == 1

    async def test_lists_that_we_have_nothing_for_are_empty(self, face: Face, era: Era) -> None:
        async with face.raw(era) as client:
            assert (await client.ask("resources/list"))["result"]["resources"] == []
            assert (await client.ask("resources/read", {"uri": "x://y", "name": "x://y"}))["error"]["code"] == -32602
            assert (await client.ask("prompts/get", {"name": "p"}))["error"]["code"] == -32602

    async def test_wrong_types_of_arguments_are_refused_and_do_no_harm(self, face: Face, era: Era) -> None:
        async with face.raw(era) as client:
            answer = await client.ask("tools/call", {"name": "echo", "arguments": [1, 2]})
            assert answer["result"]["isError"]
            assert "arguments must be an object, not [1,2]." in text_of(answer["result"])
            assert text_of(await client.call("echo", text="fine")) == "fine"

    async def test_an_id_that_is_no_identifier_is_refused(self, face: Face, era: Era) -> None:
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED | {"x-serena-session": "../x y"}) as http:
            client = RawClient(http, era)
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            answer = await client.ask("initialize" if era == "handshake" else "tools/list", params)
        assert "A session id consists of" in answer["error"]["message"]


class TestHandshakeEra:
    async def test_a_conversation_is_its_session_from_the_handshake_on(self, face: Face) -> None:
        async with face.raw("handshake", name="opencode") as client:
            assert client.session_id is not None
            assert face.sessions.get(client.session_id).client_name == "opencode"
            assert json.loads(text_of(await client.call("whoami")))["identified_by"] == "transport"

    @pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
    async def test_every_revision_of_the_era_is_spoken(self, face: Face, version: str) -> None:
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED) as http:
            client = RawClient(http, "handshake")
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            result = (await client.ask("initialize", params))["result"]
        assert result["protocolVersion"] == version
        assert "find symbols" in result["instructions"]

    async def test_delete_says_goodbye(self, face: Face) -> None:
        async with face.raw("handshake") as client:
            assert client.session_id is not None
            session = face.sessions.get(client.session_id)
            response = await client.http.delete("/mcp", headers=client.headers("", {}))
            assert response.status_code == 200
            assert session.disconnected_at is not None
            assert (await client.send("tools/list")).status_code == 404

    async def test_a_goodbye_is_said_once_though_calls_from_before_it_end_later(self, face: Face) -> None:
        answers: list[str] = []
        async with (
            face.raw("handshake", x_serena_session="w") as client,
            face.raw("handshake", x_serena_session="w") as back,
            anyio.create_task_group() as tasks,
        ):
            before = face.transports.conversation(str(client.session_id))
            assert before is not None
            tasks.start_soon(client.send, "tools/call", {"name": "finish", "arguments": {}})
            await face.tools.started.acquire()
            await client.http.delete("/mcp", headers=client.headers("", {}))
            await back.http.delete("/mcp", headers=back.headers("", {}))
            session = face.sessions.get("w")
            assert session.ended
            back.session_id = None
            await back.open()

            async def wait() -> None:
                answers.append(text_of(await back.call("wait")))

            tasks.start_soon(wait)
            await face.tools.started.acquire()
            face.tools.finish.set()
            await until(lambda: not before.requests)
            face.tools.release.set()
        assert (answers, session.disconnected_at) == (["done"], None)

    async def test_a_goodbye_leaves_a_session_to_its_other_clients(self, face: Face) -> None:
        answers: list[str] = []
        async with (
            face.raw("handshake", x_serena_session="w") as client,
            face.raw("handshake", x_serena_session="w") as other,
        ):

            async def wait() -> None:
                answers.append(text_of(await other.call("wait")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await face.tools.started.acquire()
                await client.http.delete("/mcp", headers=client.headers("", {}))
                face.tools.release.set()
            session = face.sessions.get("w")
            assert (answers, session.disconnected_at) == (["done"], None)
            await other.http.delete("/mcp", headers=other.headers("", {}))
            assert session.ended

    async def test_a_stream_that_closes_ends_no_calls_of_other_clients_of_the_session(self) -> None:
        async with (
            a_face(policy=TransportPolicy(stream_grace_s=0, check_every_s=3600)) as face,
            face.raw("handshake", x_serena_session="w") as client,
            face.raw("handshake", x_serena_session="w") as other,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(other.call, "wait")
            await face.tools.started.acquire()
            async with client.http.stream("GET", "/mcp", headers=client.headers("", {})):
                pass
            quiet = face.transports.conversation(str(client.session_id))
            assert quiet is not None
            await until(lambda: not quiet.requests)
            await face.transports.check()
            assert face.sessions.get("w").disconnected_at is None
            face.tools.release.set()

    async def test_an_unknown_conversation_is_404_and_none_at_all_400(self, face: Face) -> None:
        async with face.raw("handshake") as client:
            client.session_id = "s-unknown"
            assert (await client.send("tools/list")).status_code == 404
            client.session_id = None
            assert (await client.send("tools/list")).status_code == 400

    async def test_a_notification_cancels_a_call(self, face: Face) -> None:
        async with face.raw("handshake") as client, anyio.create_task_group() as tasks:
            request = client.request("tools/call", {"name": "wait", "arguments": {}})
            tasks.start_soon(client.http.send, request)
            await face.tools.started.acquire()
            await client.notify("notifications/cancelled", {"requestId": json.loads(request.content)["id"]})
            await until(lambda: face.tools.ended)
        assert face.tools.ended == ["cancelled"]

    async def test_a_client_that_closes_its_stream_counts_as_gone_after_a_grace_and_comes_back_by_calling(self) -> None:
        async with (
            a_face(policy=TransportPolicy(stream_grace_s=0, check_every_s=0.01)) as face,
            face.raw("handshake") as client,
        ):
            assert client.session_id is not None
            session = face.sessions.get(client.session_id)
            async with client.http.stream("GET", "/mcp", headers=client.headers("", {})) as stream:
                assert stream.status_code == 200
                for _ in range(3):
                    await face.transports.check()
                assert session.disconnected_at is None
            await until(lambda: session.disconnected_at is not None)
            assert text_of(await client.call("echo", text="back")) == "back"
            assert session.disconnected_at is None

    async def test_a_client_that_never_opened_a_stream_is_not_taken_for_gone(self) -> None:
        async with (
            a_face(policy=TransportPolicy(stream_grace_s=0, check_every_s=3600)) as face,
            face.raw("handshake") as client,
        ):
            for _ in range(3):
                await face.transports.check()
            assert client.session_id is not None
            assert face.sessions.get(client.session_id).disconnected_at is None

    async def test_a_conversation_ends_with_its_session(self, face: Face) -> None:
        async with face.raw("handshake") as client:
            assert client.session_id is not None
            face.sessions.disconnect(client.session_id, "test")
            face.sessions.get(client.session_id).disconnected_at = 0
            face.sessions.sweep()
            await face.transports.check()
            assert (await client.send("tools/list")).status_code == 404

    async def test_open_streams_are_closed_on_request_and_calls_go_on(self, face: Face) -> None:
        async with face.raw("handshake") as client, anyio.create_task_group() as tasks:
            results: list[dict[str, Any]] = []

            async def wait() -> None:
                results.append(await client.call("wait"))

            async with client.http.stream("GET", "/mcp", headers=client.headers("", {})) as stream:
                tasks.start_soon(wait)
                await face.tools.started.acquire()
                face.endpoint.close_streams()
                async for _ in stream.aiter_bytes():
                    pass
            face.tools.release.set()
            await until(lambda: results)
        assert text_of(results[0]) == "done"

    async def test_the_working_folder_is_learned_from_roots(self, face: Face) -> None:
        from mcp_types import ListRootsResult, Root

        async def roots(_context: Any) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri="file:///home/me/a%20b")])

        async with face.sdk("handshake", list_roots_callback=roots) as client:
            await client.call_tool("whoami", {})
            (session,) = face.sessions.sessions()
            conversation = face.transports.conversation(session.id)
            await until(lambda: conversation.roots_folder)
            assert json.loads((await client.call_tool("whoami", {})).content[0].text)["folder"] == "/home/me/a b"

    async def test_a_client_is_taken_back_after_a_restart(self) -> None:
        openings = Remembered()
        async with a_face(openings=openings) as before, before.raw("handshake", name="gemini") as client:
            session_id = client.session_id
        async with (
            a_face(openings=openings) as after,
            httpx.AsyncClient(base_url=after.url, headers=AUTHORIZED) as http,
        ):
            client = RawClient(http, "handshake")
            client.session_id = session_id
            answers: list[str] = []

            async def call() -> None:
                answers.append(text_of(await client.call("whoami")))

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(call)
            assert {json.loads(answer)["session"] for answer in answers} == {session_id}
            assert after.sessions.get(str(session_id)).client_name == "gemini"

    async def test_nobody_is_taken_back_by_another_credential(self) -> None:
        openings = Remembered()
        async with a_face(openings=openings) as face, face.raw("handshake") as client:
            ((known, _credential),) = openings.bodies
            openings.bodies = {(known, "another"): b"{}"}
            await client.http.delete("/mcp", headers=client.headers("", {}))
            assert (await client.send("tools/list")).status_code == 404


class TestModernEra:
    async def test_a_client_without_any_id_shares_a_session_by_name_and_folder(self, face: Face) -> None:
        async with face.raw("modern", x_serena_project="/a") as a, face.raw("modern", x_serena_project="/b") as b:
            first = json.loads(text_of(await a.call("whoami")))
            assert first == json.loads(text_of(await a.call("whoami")))
            assert first["identified_by"] == "shared"
            assert first["session"] != json.loads(text_of(await b.call("whoami")))["session"]

    @pytest.mark.parametrize("key", ["sessionId", "threadId"])
    async def test_a_conversation_id_in_meta_is_recognised(self, face: Face, key: str) -> None:
        async with face.raw("modern") as client:
            one = json.loads(text_of(await client.call("whoami", {key: "1"})))
            two = json.loads(text_of(await client.call("whoami", {key: "2"})))
        assert one["identified_by"] == two["identified_by"] == "conversation"
        assert one["session"] != two["session"]

    async def test_a_session_id_of_the_other_era_means_nothing(self, face: Face) -> None:
        async with face.raw("modern", mcp_session_id="stolen") as client:
            assert json.loads(text_of(await client.call("whoami")))["identified_by"] == "shared"

    async def test_an_unfilled_folder_is_no_folder(self, face: Face) -> None:
        async with face.raw("modern", x_serena_project="${PWD}") as client:
            assert json.loads(text_of(await client.call("whoami")))["folder"] is None

    async def test_listings_may_be_kept_for_a_while_by_their_own_client(self, face: Face) -> None:
        async with face.raw("modern") as client:
            result = (await client.ask("tools/list"))["result"]
        assert result["ttlMs"] == 30_000
        assert result["cacheScope"] == "private"

    async def test_discovery_names_the_revision_and_the_instructions(self, face: Face) -> None:
        async with face.raw("modern") as client:
            result = (await client.ask("server/discover"))["result"]
        assert result["supportedVersions"] == ["2026-07-28"]
        assert "find symbols" in result["instructions"]

    async def test_protocol_errors_are_as_the_revision_demands(self, face: Face) -> None:
        async with face.raw("modern") as client:
            assert (await client.send("no/such/method")).status_code == 404
            assert (await client.http.get("/mcp", headers=client.headers("", {}))).status_code == 405
            assert (await client.http.delete("/mcp", headers=client.headers("", {}))).status_code == 405
            assert (await client.notify("notifications/whatever")).status_code == 202
            request = client.request("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}})
            request.headers["mcp-protocol-version"] = "2099-01-01"
            response = await client.http.send(request)
            assert (response.status_code, response.json()["error"]["code"]) == (400, -32022)
            request = client.request("tools/list")
            request.headers["mcp-method"] = "tools/call"
            response = await client.http.send(request)
            assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)

    async def test_the_official_client_finds_the_newest_era_by_itself(self, face: Face) -> None:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers=AUTHORIZED) as http,
            Client(streamable_http_client(f"{face.url}/mcp", http_client=http)) as client,
        ):
            assert client.protocol_version == "2026-07-28"
            assert (await client.call_tool("echo", {"text": "hi"})).content[0].text == "hi"


class TestTheDoor:
    @pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}])
    async def test_nobody_without_the_token_gets_to_mcp(self, face: Face, headers: dict[str, str]) -> None:
        async with httpx.AsyncClient(base_url=face.url, headers=headers) as http:
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                response = await http.request(method, "/mcp", headers=ACCEPT)
                assert response.status_code == 401
                assert response.headers["www-authenticate"].startswith("Bearer")
        assert face.sessions.sessions() == []

    @pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
    async def test_foreign_hosts_and_origins_are_refused(self, face: Face, headers: dict[str, str]) -> None:
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED | headers) as http:
            assert (await http.post("/mcp", headers=ACCEPT, json={})).status_code == 403

    async def test_a_huge_body_is_refused(self, face: Face) -> None:
        async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED | ACCEPT) as http:
            response = await http.post("/mcp", content=b" " * (8 * 1024 * 1024 + 1))
            assert response.status_code == 413

    async def test_a_session_that_slept_is_woken_by_a_call(self, face: Face) -> None:
        async with face.raw("modern", x_serena_session="sleeper") as client:
            await client.call("echo", text="x")
            face.sessions.disconnect("sleeper", "test")
            await client.call("echo", text="x")
            assert face.sessions.snapshot(face.sessions.get("sleeper")).state is SessionState.CONNECTED
