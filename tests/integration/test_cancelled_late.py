"""A call that a person cancels when it can't be stopped any more is answered."""

import sys
from pathlib import Path

import pytest

from serena_central.mcp_server.subscriptions import ListName, Subscriptions
from serena_central.sessions.session import Session
from serena_central.tools.catalogue import Catalogue, tool, tools_in
from serena_central.tools.context import ToolCall
from tests.support.central import running_central
from tests.support.mcp import Era

pytestmark = pytest.mark.anyio

cancelled: list[str] = []
"""Names of the tools whose calls were cancelled."""


@tool("Switch late")
async def switch_late(call: ToolCall) -> str:
    """Changes which tools are listed, and is cancelled in its last stretch."""
    call.session.modes = ("planning",)
    for running in list(call.session.running.values()):
        running.cancel("Cancelled by ann.")
        cancelled.append(running.tool)
    return "switched"


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_it_is_answered_also_where_the_client_is_told_of_other_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: Era
) -> None:
    told: list[ListName] = []

    def list_changed(_: Subscriptions, _session: Session, name: ListName) -> None:
        told.append(name)

    monkeypatch.setattr(Subscriptions, "list_changed", list_changed)
    cancelled.clear()
    catalogue = Catalogue(tools_in(sys.modules[__name__]))
    async with running_central(tmp_path, catalogue=catalogue) as running, running.raw(era) as client:
        answer = await client.call("switch_late")
        assert answer["content"][0]["text"] == "switched"
        async with running.http() as http:
            calls = (await http.get("/api/v1/calls")).json()["calls"]
    assert (cancelled, told) == (["switch_late"], ["tools"])
    assert [call["outcome"] for call in calls] == ["ok"]
