"""What nobody foresaw costs its own call or its own message, and not the server."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.hub.hub import Hub
from serena_central.mcp_server.upstream_news import UpstreamNews
from tests.support.central import running_central
from tests.support.mcp import text_of
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = pytest.mark.anyio

ABLE: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {}}}


async def test_a_call_that_may_ask_back_fails_alone(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(*_: Any) -> dict[str, Any]:
        raise ZeroDivisionError("a bug")

    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with monkeypatch.context() as patch:
            patch.setattr(Hub, "call", call)
            failed = await client.call("one__echo", ABLE, text="x")
        assert "Internal error" in text_of(failed)
        assert text_of(await client.call("one__echo", ABLE, text="x")) == "x"


async def test_news_that_could_not_be_told_cost_the_server_nothing(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = anyio.Semaphore(0)

    async def tell(_: UpstreamNews) -> None:
        failed.release()
        raise ZeroDivisionError("a bug")

    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern", x_serena_session="s") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"
        monkeypatch.setattr(UpstreamNews, "_tell", tell)
        for name in ("added", "another"):
            await client.call("one__grow", text=name)
            with anyio.fail_after(60):
                await failed.acquire()
        assert text_of(await client.call("one__echo", text="x")) == "x"
