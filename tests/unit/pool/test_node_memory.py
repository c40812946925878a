"""Processes of one machine share a memory budget: each stops its own servers, in an order that all agree on."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from serena_central.lsp.catalogue import ServerSpec
from serena_central.pool.budget import Holder, OtherProcess
from serena_central.pool.node_memory import STALE_S, NodeMemory
from serena_central.pool.state import RunState
from tests.support.fakes import FAKE_SPEC
from tests.support.pools import PoolBox, pool_box

pytestmark = pytest.mark.anyio

SMALL: ServerSpec = msgspec.structs.replace(FAKE_SPEC, memory_mb=1)


@contextmanager
def another_process() -> Generator[int]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def holder(name: str, megabytes: int, idle_since: float | None) -> Holder:
    return Holder(name, megabytes << 20, idle_since, lambda _why: pytest.fail("it is another process's"))


async def use(box: PoolBox, name: str) -> None:
    async with box.pool.lease(box.wanted(name, SMALL)):
        pass


def test_each_learns_what_the_others_hold_and_for_how_long_it_was_idle(tmp_path: Path) -> None:
    with another_process() as pid:
        here, there = NodeMemory(tmp_path), NodeMemory(tmp_path, pid)
        assert here.exchange([holder("ty", 50, 90.0), holder("gopls", 70, None)], now=100.0) == []
        ty, gopls = there.exchange([holder("clangd", 20, None)], now=7000.0)
        assert (ty.name, ty.memory_bytes, gopls.idle_since) == ("ty", 50 << 20, None)
        assert ty.idle_since is not None
        assert 7000.0 - ty.idle_since == pytest.approx(10.0, abs=5.0)
        ty.stop("over the budget")  # its own process does the same sum
        assert [one.name for one in here.exchange([], now=101.0)] == ["clangd"]
        assert there.exchange([], now=7001.0) == []
        assert list(tmp_path.iterdir()) == []  # who holds nothing leaves nothing to read
        here.exchange([holder("ty", 50, None), holder("texts", 0, 1.0)], now=102.0)
        assert [one.name for one in there.exchange([], now=7002.0)] == ["ty"]
        here.close()
        assert list(tmp_path.iterdir()) == []


def test_what_a_process_left_that_is_gone_or_stands_still_counts_no_more(tmp_path: Path) -> None:
    with another_process() as pid:
        NodeMemory(tmp_path, pid).exchange([holder("ty", 50, None)], now=0.0)
        here = NodeMemory(tmp_path)
        assert len(here.exchange([], now=0.0)) == 1
        old = (tmp_path / f"{pid}.json").stat().st_mtime - STALE_S - 1
        os.utime(tmp_path / f"{pid}.json", (old, old))
        assert here.exchange([], now=0.0) == []
        NodeMemory(tmp_path, pid).exchange([holder("ty", 50, None)], now=0.0)
    assert here.exchange([], now=0.0) == []
    much = json.dumps([["ty", "much", None]])
    for name, text in (("no pid.json", "[]"), (f"{2**70}.json", "[]"), ("1.json", "no JSON"), ("1.json", much)):
        (tmp_path / name).write_text(text)
        assert here.exchange([], now=0.0) == []


async def test_idle_servers_go_for_what_other_processes_have_in_use_and_stay_where_others_were_idle_longer(
    tmp_path: Path,
) -> None:
    with another_process() as pid:
        async with pool_box(tmp_path, memory_budget_mb=1000, idle_ttl_s=99999, health_interval_s=99999) as box:
            box.pool.share_node(NodeMemory(tmp_path / "node"))
            there, now = NodeMemory(tmp_path / "node", pid), box.clock()
            await use(box, "a")
            box.clock.advance(100)
            there.exchange([holder("gopls", 995, now - 500)], now)
            await box.pool.sweep()  # what is over the budget is the other's, which was idle longer
            assert box.shown(box.wanted("a", SMALL)).state is RunState.IDLE
            there.exchange([holder("gopls", 1200, None)], now)
            await box.pool.sweep()
            await box.moved("expired", reason="memory budget")


async def test_where_the_machine_runs_out_of_memory_only_the_largest_server_of_all_processes_ends(
    tmp_path: Path,
) -> None:
    """Each process ended its own largest one, however small."""
    with another_process() as pid:
        async with pool_box(tmp_path, memory_budget_mb=100) as box, box.pool.lease(box.wanted("a", SMALL)):
            box.pool.share_node(NodeMemory(tmp_path / "node"))
            there, now = NodeMemory(tmp_path / "node", pid), box.clock()
            box.memory_mb["a"], box.free_bytes = 60, 1 << 20
            there.exchange([holder("ty", 90, None)], now)
            await box.pool.sweep()
            assert box.shown(box.wanted("a", SMALL)).state is RunState.IN_USE
            there.exchange([holder("ty", 50, None)], now)
            await box.pool.sweep()
            await box.moved("expired", reason="out of memory: it took 60 MB of the memory budget of 100 MB")


async def test_no_server_ends_for_the_memory_that_something_else_takes(tmp_path: Path) -> None:
    """One after another ended each time that it started, and the machine had no more memory than before."""
    async with pool_box(tmp_path, memory_budget_mb=20) as box, box.pool.lease(box.wanted("a", SMALL)):
        box.pool.share_budget(lambda: [OtherProcess("MCP server", os.getpid(), None, lambda _why: None)])
        box.memory_mb["a"], box.free_bytes = 5, 1 << 20
        await box.pool.sweep()
        assert box.shown(box.wanted("a", SMALL)).state is RunState.IN_USE
