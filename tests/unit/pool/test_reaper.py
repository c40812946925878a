"""Sweeps: idle servers, worn-out ones, the memory budget, health and forgetting. With real child processes."""

import os
import signal
from pathlib import Path

import anyio
import msgspec
import pytest

from serena_central.core.errors import LanguageServerError, ServerUnavailable
from serena_central.core.tracing import Phases, measuring
from serena_central.lsp.catalogue import ServerSpec
from serena_central.pool.budget import CachedMemory
from serena_central.pool.reaper import RESTING_MEASURED_S, Reaper
from serena_central.pool.run import BACKGROUND, RESTING_AFTER_S, Run
from serena_central.pool.state import RunState
from tests.support.fakes import FAKE_SPEC, logged
from tests.support.pools import PATIENCE_S, PoolBox, hover, pool_box

pytestmark = pytest.mark.anyio

MB = 1024 * 1024


SMALL = msgspec.structs.replace(FAKE_SPEC, memory_mb=1)


async def use(box: PoolBox, name: str = "a", times: int = 1, *, spec: ServerSpec = FAKE_SPEC) -> None:
    for _ in range(times):
        async with box.pool.lease(box.wanted(name, spec)):
            pass


async def test_a_server_that_nobody_was_ever_attached_to_goes_five_minutes_after_its_last_call(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        await use(box)
        box.clock.advance(299)
        await box.pool.sweep()
        assert box.shown(box.wanted("a")).state is RunState.IDLE
        assert box.shown(box.wanted("a")).idle_s == 299
        box.clock.advance(1)
        await box.pool.sweep()
        await box.moved("disconnected", reason="idle timeout: unused for 300 s")


async def test_attached_sessions_hold_it_until_they_leave_or_fall_silent(tmp_path: Path) -> None:
    async with pool_box(tmp_path, health_interval_s=9999) as box:
        left, silent = box.wanted("left"), box.wanted("silent")
        for wanted in (left, silent):
            box.pool.attach(wanted.root)
            await use(box, wanted.root.name)
        box.clock.advance(400)
        box.pool.detach(left.root)
        box.pool.touch(silent.root)
        assert (box.shown(left).attached, box.shown(silent).attached) == (0, 1)
        await box.pool.sweep()
        box.clock.advance(300)
        await box.pool.sweep()
        assert box.shown(left).state is not RunState.IDLE
        assert box.shown(silent).state is RunState.IDLE
        box.clock.advance(300)
        await box.pool.sweep()
        assert box.shown(silent).state is not RunState.IDLE


async def test_a_server_in_use_never_goes_for_idleness_or_memory(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=1) as box, box.pool.lease(box.wanted("a")) as server:
        box.clock.advance(9999)
        await box.pool.sweep()
        assert box.shown(box.wanted("a")).state is RunState.IN_USE
        assert await hover(server) == "v1:x = 1"


async def test_a_worn_out_server_is_replaced_while_it_goes_on_serving(tmp_path: Path) -> None:
    async with pool_box(tmp_path, max_calls=3) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as old:
            gate = box.gate("a")
            await use(box, times=2)  # the third lease in all
            await box.moved("connecting", reason="max calls: run 1 has served 3 leases")
            await use(box, times=5)
            assert [(shown.run, shown.state) for shown in box.pool.snapshot()] == [
                (2, RunState.CONNECTING),
                (1, RunState.IN_USE),
            ]
            gate.set()
            await box.moved("expired", reason="max calls: run 2 takes over", run=1)
            async with box.pool.lease(wanted) as fresh:
                assert fresh is not old
            assert await hover(old) == "v1:x = 1"
            assert [(shown.run, shown.draining) for shown in box.pool.snapshot()] == [(2, False), (1, True)]
        await box.moved("disconnected", run=1)


async def test_nothing_is_lost_while_servers_are_replaced_under_concurrent_calls(tmp_path: Path) -> None:
    async with pool_box(tmp_path, max_calls=20) as box:
        answers: list[str | None] = []

        async def work(worker: int) -> None:
            for number in range(25):
                async with box.pool.lease(box.wanted("a")) as server:
                    answers.append(await hover(server, column=worker * 100 + number))

        async with anyio.create_task_group() as tasks:
            for worker in range(8):
                tasks.start_soon(work, worker)
        assert answers == ["v1:x = 1"] * 200
        replaced = await box.moved("expired", reason="max calls", run=1)
        assert replaced.data["from"] in ("in_use", "idle")
        assert box.shown(box.wanted("a")).breaker.failures == 0


async def test_a_replacement_that_fails_is_tried_again_and_the_old_one_serves_on(tmp_path: Path) -> None:
    async with pool_box(tmp_path, max_calls=2) as box:
        await use(box)
        box.scripts["a"] = {"fail_initialize": "no licence"}
        await use(box)
        await box.moved("disconnected", reason="no licence", run=2)
        assert box.shown(box.wanted("a")).run == 1
        box.scripts["a"] = {}
        await use(box)
        await box.pool.sweep()
        await box.moved("expired", reason="run 3 takes over", run=1)


async def test_a_replacement_takes_over_when_the_old_one_crashes_meanwhile(tmp_path: Path) -> None:
    async with pool_box(tmp_path, max_calls=1) as box:
        gate = box.gate("a")
        gate.set()
        async with box.pool.lease(box.wanted("a")) as old:
            gate.clear()
            await box.moved("connecting", run=2)
            assert old.pid is not None
            os.kill(old.pid, signal.SIGKILL)
            await box.moved("expired", reason="crash", run=1)
            gate.set()
            async with box.pool.lease(box.wanted("a")) as fresh:
                assert await hover(fresh) == "v1:x = 1"
        assert box.shown(box.wanted("a")).run in (2, 3)


async def test_a_drain_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with pool_box(tmp_path, max_calls=1, drain_timeout_s=300) as box:
        box.scripts["a"] = {"hang_on": ["textDocument/hover"], "log": str(log)}
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ServerUnavailable, match="was stopped"):
                    async with box.pool.lease(box.wanted("a")) as server:
                        await hover(server)

            tasks.start_soon(ask)
            await logged(log, method="textDocument/hover")
            await box.moved("expired", reason="max calls", run=1)
            await box.pool.sweep()
            assert box.pool.snapshot()[-1].draining
            box.clock.advance(300)
            await box.pool.sweep()
        await box.moved("disconnected", run=1)


async def test_the_least_recently_used_idle_server_makes_room(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=100) as box:
        for name in ("first", "second", "third"):
            await use(box, name, spec=SMALL)
            box.clock.advance(1)
        await use(box, "first", spec=SMALL)
        box.clock.advance(1)
        box.memory_mb.update(first=40, second=40, third=40)
        await box.pool.sweep()
        expired = await box.moved("expired", reason="memory budget")
        assert expired.project == str(box.wanted("second").root)
        assert [box.shown(box.wanted(name, SMALL)).state for name in ("first", "third")] == [RunState.IDLE] * 2


async def test_an_idle_server_that_holds_most_of_the_budget_goes_before_those_unused_for_longer(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=100) as box:
        for name in ("small", "other", "huge"):
            await use(box, name, spec=SMALL)
            box.clock.advance(1)
        box.memory_mb.update(small=30, other=20, huge=60)  # as a huge answer leaves it
        await box.pool.sweep()
        expired = await box.moved("expired", reason="memory budget")
        assert expired.project == str(box.wanted("huge").root)
        assert "used 60 MB" in expired.data["reason"]
        assert [box.shown(box.wanted(name, SMALL)).state for name in ("small", "other")] == [RunState.IDLE] * 2


async def test_what_the_server_itself_keeps_for_speed_counts_and_goes_in_the_same_order(tmp_path: Path) -> None:
    dropped = anyio.Event()
    async with pool_box(tmp_path, memory_budget_mb=100) as box:
        await use(box, "a", spec=SMALL)
        box.memory_mb.update(a=40)
        texts = CachedMemory("texts", 70 * MB, idle_s=100.0, drop=dropped.set)
        box.pool.count_caches(lambda: [] if dropped.is_set() else [texts])
        box.clock.advance(5)
        await box.pool.sweep()
        assert dropped.is_set()
        assert box.shown(box.wanted("a", SMALL)).state is RunState.IDLE


async def test_what_a_server_really_takes_is_measured(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        await use(box)
        await box.pool.sweep()
        assert box.shown(box.wanted("a")).memory_bytes > MB


async def test_servers_at_rest_are_measured_less_often_until_one_works_again(tmp_path: Path) -> None:
    async with pool_box(tmp_path, health_interval_s=9999) as box:
        await use(box)
        box.clock.advance(RESTING_AFTER_S)
        await box.pool.sweep()

        async def measured_mb(now_mb: int, after_s: float) -> int:
            box.memory_mb.update(a=now_mb)
            box.clock.advance(after_s)
            await box.pool.sweep()
            return box.shown(box.wanted("a")).memory_bytes // MB

        before_mb = box.shown(box.wanted("a")).memory_bytes // MB
        assert await measured_mb(1000, 5) == before_mb
        assert await measured_mb(1000, RESTING_MEASURED_S - 5) == 1000
        assert await measured_mb(2000, 5) == 1000
        await use(box)
        assert await measured_mb(2000, 1) == 2000
        assert await measured_mb(3000, 1) == 3000


async def test_a_server_is_told_its_part_of_the_budget(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=6000) as box:
        await use(box)
        assert box.limits_mb == [3000]


async def test_a_sweep_retires_idle_servers_until_the_rest_fits(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=1) as box:
        await use(box)
        box.clock.advance(1)
        await box.pool.sweep()
        await box.moved("disconnected", reason="memory budget: the memory budget of 1 MB")


async def test_a_server_that_was_asked_a_moment_ago_is_not_taken_from_the_call_that_asks_it_again(
    tmp_path: Path,
) -> None:
    async with pool_box(tmp_path, memory_budget_mb=1) as box:
        await use(box)
        await box.pool.sweep()
        assert box.shown(box.wanted()).state is RunState.IDLE


async def test_an_idle_server_over_its_share_is_stopped_sooner_than_others(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=100, over_share_ttl_s=60, idle_ttl_s=300) as box:
        for name in ("small", "huge"):
            await use(box, name, spec=SMALL)
        box.memory_mb.update(small=30, huge=60)
        box.clock.advance(59)
        await box.pool.sweep()
        assert box.shown(box.wanted("huge", SMALL)).state is RunState.IDLE
        box.clock.advance(1)
        await box.pool.sweep()
        await box.moved("expired", reason="memory budget: it took 60 MB, more than half of the memory budget")
        assert box.shown(box.wanted("small", SMALL)).state is RunState.IDLE


async def test_servers_in_use_beyond_the_budget_are_told_once_with_their_holders_and_stopped_when_idle(
    tmp_path: Path,
) -> None:
    def warnings() -> list[str]:
        return [event.message for event in box.bus.recent() if event.kind == "server.memory"]

    async with pool_box(tmp_path, memory_budget_mb=100) as box:
        box.memory_mb["a"] = 190
        with measuring(Phases("find_referencing_symbols, call c-1")):
            lease = box.pool.lease(box.wanted())
            async with lease:
                for _ in range(2):
                    await box.pool.sweep()
                (warning,) = warnings()
                assert "take 190 MB of the memory budget of 100 MB" in warning
                assert "held by find_referencing_symbols, call c-1" in warning
                box.clock.advance(5)
                shown = box.shown(box.wanted())
                assert [(held.label, held.held_s) for held in shown.holders] == [
                    ("find_referencing_symbols, call c-1", 5)
                ]
        assert box.shown(box.wanted()).holders == ()
        box.clock.advance(1)
        await box.pool.sweep()
        await box.moved("expired", reason="memory budget")
        assert len(warnings()) == 1


async def test_where_the_machine_runs_out_of_memory_the_largest_server_ends_although_it_is_in_use(
    tmp_path: Path,
) -> None:
    """It grew until the machine swapped, since a server in use was only warned of."""
    async with pool_box(tmp_path, memory_budget_mb=100) as box:
        box.scripts["wild"] = {"hang_on": ["textDocument/hover"]}
        failed: list[LanguageServerError] = []
        leased = anyio.Event()

        async def ask() -> None:
            async with box.pool.lease(box.wanted("wild", SMALL)) as server:
                leased.set()
                try:
                    await hover(server)
                except LanguageServerError as error:
                    failed.append(error)

        async with box.pool.lease(box.wanted("tame", SMALL)) as tame, anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.fail_after(PATIENCE_S):
                await leased.wait()
            await anyio.wait_all_tasks_blocked()
            box.memory_mb |= {"wild": 190, "tame": 60}
            await box.pool.sweep()
            assert box.shown(box.wanted("wild", SMALL)).state is RunState.IN_USE
            box.free_bytes = 1 << 20
            await box.pool.sweep()
            await box.moved("expired", reason="out of memory: it took 190 MB of the memory budget of 100 MB")
            await box.pool.sweep()  # its memory comes back: nothing else has to go
            assert await hover(tame) == "v1:x = 1"
        assert len(failed) == 1


async def test_what_outlives_a_call_holds_servers_for_itself(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box, anyio.create_task_group() as tasks:
        over = anyio.Event()

        async def later() -> None:
            await over.wait()
            async with box.pool.lease(box.wanted()):
                assert [held.label for held in box.shown(box.wanted()).holders] == [BACKGROUND]

        with measuring(Phases("activate_project, call c-1")):
            tasks.start_soon(later)
        over.set()


async def test_the_processes_of_a_server_are_told_with_what_is_their_own(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        await use(box)
        await box.pool.sweep()
        shown = box.shown(box.wanted())
        assert shown.pid in {one.pid for one in shown.processes}
        assert sum(one.memory_bytes for one in shown.processes) == shown.memory_bytes
        assert all(0 < one.own_bytes <= one.memory_bytes for one in shown.processes)


async def test_a_start_is_refused_when_all_memory_is_in_use_and_admitted_once_one_is_idle(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=1) as box:
        async with box.pool.lease(box.wanted("a")):
            with pytest.raises(ServerUnavailable, match=r"take \d+ MB of the budget of 1 MB, and none is idle"):
                async with box.pool.lease(box.wanted("b")):
                    pass
        async with box.pool.lease(box.wanted("b")) as server:
            assert await hover(server) == "v1:x = 1"
        await box.moved("expired", reason="memory budget")


async def test_a_replacement_that_the_budget_refuses_waits_for_a_later_sweep(tmp_path: Path) -> None:
    async with pool_box(tmp_path, max_calls=2, memory_budget_mb=1) as box:
        async with box.pool.lease(box.wanted("a")):
            await box.pool.sweep()
            async with box.pool.lease(box.wanted("a")) as server:
                assert await hover(server) == "v1:x = 1"
            assert len(box.located) == 1
        kinds = [event.kind for event in box.bus.recent()]
        assert "server.replacement_postponed" in kinds


async def test_a_worn_out_server_that_makes_room_for_its_own_successor_is_simply_followed_by_it(tmp_path: Path) -> None:
    # Enough for what runs, too little for what the catalogue expects of one more.
    async with pool_box(tmp_path, max_calls=2, memory_budget_mb=FAKE_SPEC.memory_mb - 1) as box:
        box.memory_mb["a"] = FAKE_SPEC.memory_mb
        await use(box)
        async with box.pool.lease(box.wanted("a")):
            assert "server.replacement_postponed" in [event.kind for event in box.bus.recent()]
        box.memory_mb["a"] = 1
        await box.pool.sweep()
        await box.moved("expired", reason="memory budget", run=1)
        await use(box)
        await box.moved("disconnected", run=1)
        assert [shown.run for shown in box.pool.snapshot()] == [2]


async def test_an_idle_server_that_does_not_answer_a_ping_is_replaced(tmp_path: Path) -> None:
    async with pool_box(tmp_path, health_timeout_s=0.1, health_interval_s=60) as box:
        await use(box, "hung")
        pid = box.shown(box.wanted("hung")).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await box.pool.sweep()
        assert box.shown(box.wanted("hung")).state is RunState.IDLE
        box.clock.advance(60)
        await box.pool.sweep()
        await box.moved("expired", reason="hang: it was idle, answered no ping")


async def test_a_ping_that_finds_the_server_in_use_leaves_it_to_the_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = anyio.Event(), Run.answers

    async def seen(run: Run) -> bool:
        asked.set()
        return await answers(run)

    monkeypatch.setattr(Run, "answers", seen)
    async with pool_box(tmp_path, health_timeout_s=0.2, health_interval_s=60) as box:
        await use(box)
        pid = box.shown(box.wanted("a")).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        box.clock.advance(60)
        async with anyio.create_task_group() as tasks:
            checked = anyio.Event()

            async def check() -> None:
                await box.pool.sweep()
                checked.set()

            tasks.start_soon(check)
            with anyio.fail_after(PATIENCE_S):
                await asked.wait()
            async with box.pool.lease(box.wanted("a")):
                with anyio.fail_after(PATIENCE_S):
                    await checked.wait()
                assert box.shown(box.wanted("a")).state is RunState.IN_USE
                os.kill(pid, signal.SIGCONT)


async def test_a_server_that_is_gone_for_an_hour_is_forgotten(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        for wanted in (box.wanted("a"), box.wanted("a", strict=True)):
            async with box.pool.lease(wanted):
                pass
        await box.pool.stop(box.wanted("a").key, "done")
        box.clock.advance(1)
        await box.pool.stop(box.wanted("a", strict=True).key, "done")
        box.clock.advance(3598)
        await box.pool.sweep()
        assert len(box.pool.snapshot()) == 2
        for left in (1, 0):
            box.clock.advance(1)
            await box.pool.sweep()
            assert len(box.pool.snapshot()) == left


async def test_what_was_never_started_and_roots_without_sessions_are_forgotten_too(tmp_path: Path) -> None:
    async with pool_box(tmp_path, memory_budget_mb=1, idle_ttl_s=99999) as box, box.pool.lease(box.wanted("a")):
        for name in ("b", "c"):
            box.pool.attach(box.wanted(name).root)
            box.pool.detach(box.wanted(name).root)
            with pytest.raises(ServerUnavailable, match="none is idle"):
                async with box.pool.lease(box.wanted(name)):
                    pass
        box.pool.attach(tmp_path / "asks no server")
        box.pool.detach(tmp_path / "asks no server")
        for left in (3, 1):
            await box.pool.sweep()
            assert len(box.pool._slots) == left
            box.clock.advance(3600)
        assert not box.pool._interests._roots


async def test_the_pool_sweeps_by_itself_and_survives_a_sweep_that_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pool_box(tmp_path, idle_check_s=0.01) as box:
        failed = anyio.Event()

        async def fail(_reaper: Reaper) -> None:
            failed.set()
            raise RuntimeError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(Reaper, "sweep", fail)
            with anyio.fail_after(60):
                await failed.wait()
        await use(box)
        box.clock.advance(300)
        await box.moved("disconnected", reason="idle timeout")
    assert "sweeping language servers failed" in caplog.text


async def test_snapshots_are_plain_data(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        await use(box)
        assert b'"state":"idle"' in msgspec.json.encode(box.pool.snapshot(), enc_hook=str)
