"""The stream by which a proxy shows that it is alive."""

from pathlib import Path

import anyio
import pytest

from serena_central.web import presence
from tests.support.central import running_central

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
