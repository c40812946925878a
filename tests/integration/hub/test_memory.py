"""The memory of upstreams counts into the one budget: idle shared ones are stopped to make room; /metrics shows it."""

import sys
from pathlib import Path

import anyio
import pytest

from serena_central.hub.snapshots import UpstreamState
from serena_central.pool.budget import Holder, make_room
from tests.support.central import running_central
from tests.support.mcp import text_of
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")]


async def test_idle_shared_upstreams_are_stopped_when_the_budget_is_exceeded(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"idle": scripted(), "own": scripted() | {"sharing": "session"}, "busy": scripted()})
    settings = QUICK | {"pool.memory_budget_mb": 1, "pool.idle_check_s": 600}
    async with running_central(tmp_path, settings) as running, running.raw("modern") as client:
        own = text_of(await client.call("own__who"))
        first = text_of(await client.call("idle__who"))
        hub, pool = await running.central.upstreams.hub(), running.central.pool
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call, "busy__never")
            with anyio.fail_after(30):
                while not any(one.users for one in hub.upstreams() if one.name == "busy"):
                    await anyio.sleep(0.01)
                while hub.state("idle") is not UpstreamState.STOPPED:  # one in use a second ago is left alone
                    await pool.sweep()
            assert hub.state("own") is UpstreamState.READY
            assert hub.state("busy") is UpstreamState.READY
            (idle,) = [one for one in hub.upstreams() if one.name == "idle"]
            assert idle.why.startswith("the memory budget of 1 MB is exceeded; this server used")
            async with running.http() as http:
                metrics = (await http.get("/metrics")).text
            assert 'serena_central_upstream_starts_total{server="idle"}' in metrics
            (size,) = [
                line.split()[1] for line in metrics.splitlines() if 'upstream_memory_bytes{server="busy"}' in line
            ]
            assert float(size) > 1_000_000
            tasks.cancel_scope.cancel()
        assert text_of(await client.call("idle__who")) != first
        assert text_of(await client.call("own__who")) == own


def test_huge_ones_go_first_then_those_idle_longest_and_never_those_that_must_stay() -> None:
    stopped: list[str] = []

    def holder(name: str, size: int, idle_since: float | None) -> Holder:
        return Holder(name, size, idle_since, lambda _reason: stopped.append(name))

    holding = [holder("used", 60, None), holder("new", 30, 9.0), holder("old", 30, 1.0), holder("huge", 70, 8.0)]
    assert [one.name for one in make_room(holding, 130).retire] == ["huge"]
    room = make_room(holding, 100, 5)
    assert [one.name for one in room.retire] == ["huge", "old"]
    assert room.used_bytes == 90
    assert [one.name for one in make_room(holding, 0, idle_until=5.0).retire] == ["old"]
    assert not stopped
