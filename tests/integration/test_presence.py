"""The stream by which a proxy shows that it is alive."""

import json
from pathlib import Path

import anyio
import pytest

from serena_central.web import presence
from tests.support.central import running_central
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio


async def test_a_session_is_disconnected_after_its_proxys_end_whatever_the_server_did_in_it_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK reads the handshake when it is first needed, which may be after the end: that is no call."""
    monkeypatch.setattr(presence, "GRACE_S", 0.3)
    async with running_central(tmp_path) as running, running.raw("handshake") as client:
        path = f"/api/v1/sessions/{client.session_id}"
        async with client.http.stream("GET", f"{path}/presence") as stream:
            assert stream.status_code == 200
            assert (await client.http.get(path)).json()["open_streams"] == 1
        assert "prompts" in (await client.ask("prompts/list"))["result"]
        with anyio.fail_after(30):
            while (await client.http.get(path)).json()["state"] != "disconnected":
                await anyio.sleep(0.02)
        assert "prompts" in (await client.ask("prompts/list"))["result"]  # it was there, and is taken back
        assert (await client.http.get(path)).json()["state"] != "disconnected"


async def test_modes_that_a_proxy_begins_with_count_whichever_of_its_requests_comes_first(tmp_path: Path) -> None:
    async def modes(client: RawClient) -> object:
        return json.loads(text_of(await client.call("get_current_config")))["modes"]

    said = {"x_serena_session": "proxy-1", "x_serena_modes": "planning"}
    async with (
        running_central(tmp_path) as central,
        central.http(**said) as http,
        http.stream("GET", "/api/v1/sessions/proxy-1/presence") as stream,
    ):
        await anext(stream.aiter_lines())
        async with central.raw("modern", **said) as client:
            assert await modes(client) == ["planning"]
            await client.call("switch_modes", modes=["editing"])
            assert await modes(client) == ["editing"]
            await client.call("switch_modes", modes=[])
            assert await modes(client) == ["interactive", "editing"]
