"""Without the SDK: the direct lane begins conversations, and the SDK takes them over where it left off."""

from typing import Any

import httpx
import pytest
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types import version as sdk_versions

from serena_central.mcp_server import protocol
from tests.integration.test_direct_lane import is_direct
from tests.integration.test_mcp_endpoint import AUTHORIZED, Face, Remembered, a_face
from tests.support.mcp import HANDSHAKE, messages_in

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream"}

CLIENT = {"name": "codex", "version": "1"}


def initialize(**params: Any) -> dict[str, Any]:
    said = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": said}


ODD: dict[str, Any] = {"method": "prompts/get", "params": {"name": "onboarding", "unknown": True}}
"""A request that needs the SDK."""

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def echo(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}}


async def opened(face: Face, message: dict[str, Any], **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED | ACCEPT | headers, timeout=30) as http:
        return await http.post("/mcp", json=message)


def test_what_the_protocol_names_is_what_the_sdk_names() -> None:
    assert protocol.HANDSHAKE_VERSIONS == sdk_versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert protocol.MODERN_VERSIONS == sdk_versions.MODERN_PROTOCOL_VERSIONS
    assert protocol.VERSIONS == sdk_versions.SUPPORTED_PROTOCOL_VERSIONS
    assert protocol.STATUS_OF == ERROR_CODE_HTTP_STATUS
    assert (protocol.INVALID_REQUEST, protocol.INVALID_PARAMS) == (INVALID_REQUEST, INVALID_PARAMS)
    assert (protocol.INTERNAL_ERROR, protocol.UNSUPPORTED_VERSION) == (INTERNAL_ERROR, UNSUPPORTED_PROTOCOL_VERSION)
    assert {CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY} == protocol.ENVELOPE
    assert (protocol.SERVER_INFO_KEY, protocol.LOG_LEVEL_KEY) == (SERVER_INFO_META_KEY, LOG_LEVEL_META_KEY)
    assert protocol.MISSING_CAPABILITY == MISSING_REQUIRED_CLIENT_CAPABILITY


@pytest.mark.parametrize(
    "message",
    [
        *(initialize(protocolVersion=version) for version in (*sdk_versions.SUPPORTED_PROTOCOL_VERSIONS, "1999-01-01")),
        initialize(capabilities={"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}}}),
        initialize(
            capabilities={"tasks": {"list": {}}, "roots": {}},
            clientInfo={**CLIENT, "title": "Codex", "websiteUrl": "https://x.test"},
        ),
        initialize(capabilities="all"),
        initialize(clientInfo={"name": 5, "version": "1"}),
        initialize(protocolVersion=7),
        {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
        {**initialize(), "id": None},
        {**initialize(), "jsonrpc": "1.0"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        INITIALIZED,
    ],
    ids=str,
)
async def test_a_conversation_begins_in_the_same_way_with_and_without_the_sdk(message: dict[str, Any]) -> None:
    async with a_face(lane="direct") as without, a_face(lane="sdk") as loaded:
        early, late = await opened(without, message), await opened(loaded, message)
    assert early.status_code == late.status_code
    assert ("mcp-session-id" in early.headers) == ("mcp-session-id" in late.headers)
    assert messages_in(early.text) == messages_in(late.text)


async def test_without_both_forms_of_an_answer_the_sdk_refuses() -> None:
    async with a_face(lane="direct") as face:
        assert (await opened(face, initialize(), accept="application/json")).status_code == 406


async def test_plain_calls_need_no_sdk_and_a_later_message_finds_the_conversation_as_it_was() -> None:
    async with (
        a_face(lane="direct") as face,
        httpx.AsyncClient(base_url=face.url, headers=AUTHORIZED | ACCEPT) as http,
    ):
        begun = await http.post("/mcp", json=initialize())
        http.headers.update({"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": HANDSHAKE})
        conversation = face.transports.conversation(begun.headers["mcp-session-id"])
        assert conversation is not None
        assert (
            await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        ).status_code == 202
        call = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "a"}},
        }
        assert is_direct(await http.post("/mcp", json=call))
        assert conversation.transport is None
        session = conversation.session_id
        answered = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 3, **ODD})
        assert messages_in(answered.text)[-1]["result"]["messages"]
        assert conversation.transport is not None
        assert conversation.session_id == session
        assert is_direct(await http.post("/mcp", json={**call, "id": 4}))
        assert (await http.delete("/mcp")).status_code == 200
        assert (await http.post("/mcp", json={**call, "id": 5})).status_code == 404


async def test_a_conversation_ends_by_delete_before_the_sdk_was_needed() -> None:
    async with a_face(lane="direct") as face:
        begun = await opened(face, initialize())
        headers = AUTHORIZED | ACCEPT | {"mcp-session-id": begun.headers["mcp-session-id"]}
        async with httpx.AsyncClient(base_url=face.url, headers=headers) as http:
            assert (await http.delete("/mcp")).status_code == 200
            assert (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 3, "method": "ping"})).status_code == 404


async def test_a_conversation_of_before_a_restart_goes_on_without_the_sdk() -> None:
    openings = Remembered()
    async with a_face(openings=openings, lane="direct") as before:
        begun = await opened(before, initialize())
    headers = AUTHORIZED | ACCEPT | {"mcp-session-id": begun.headers["mcp-session-id"]}
    async with (
        a_face(openings=openings, lane="direct") as after,
        httpx.AsyncClient(base_url=after.url, headers=headers) as http,
    ):
        answered = await http.post("/mcp", json=echo("again"))
        assert is_direct(answered)
        assert "again" in answered.text
        odd = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 3, **ODD})
        assert messages_in(odd.text)[-1]["result"]["messages"]
