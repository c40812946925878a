"""Crashes, hangs and crash loops: what callers see, and what the pool makes of them. With real child processes."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core import progress
from serena_central.core.errors import (
    LanguageServerError,
    RequestFailed,
    ServerCrashed,
    ServerSilent,
    ServerUnavailable,
)
from serena_central.lsp.client import LanguageServer
from serena_central.pool.state import RunState
from tests.support.fakes import log_of, logged
from tests.support.pools import PoolBox, hover, pool_box, until_gone

pytestmark = pytest.mark.anyio

HOVER = "textDocument/hover"


async def crash(box: PoolBox) -> None:
    """One call that ends in the server's crash."""
    with pytest.raises(ServerCrashed):
        async with box.pool.lease(box.wanted("a")) as server:
            await hover(server)


async def give_up_a_call(box: PoolBox, name: str, started: Path, count: int) -> None:
    """One call that is cancelled, as at its deadline, after the server has read it."""
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            async with box.pool.lease(box.wanted(name)) as server:
                await hover(server, column=count)

        tasks.start_soon(ask)
        await logged(started, method=HOVER, count=count)
        tasks.cancel_scope.cancel()


async def test_a_killed_server_fails_its_calls_and_the_next_lease_gets_a_new_one(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as server:
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(ServerCrashed) as crashed:
                await hover(server)
        assert crashed.value.exit_code == -9
        await box.moved("expired", reason="crash", run=1)
        async with box.pool.lease(wanted) as fresh:
            assert fresh is not server
            assert await hover(fresh) == "v1:x = 1"
        await box.moved("disconnected", run=1)
        assert box.shown(wanted).restarts == 1


async def test_a_server_that_dies_while_nobody_uses_it_is_noticed(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        async with box.pool.lease(box.wanted("a")) as server:
            assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        moved = await box.moved("disconnected", reason="crash: exit code -9")
        assert moved.data["from"] == "expired"


async def test_reads_are_repeated_after_a_crash(tmp_path: Path) -> None:
    crashes = tmp_path / "crashes"
    crashes.write_text("2", encoding="utf-8")
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"crash_on": [HOVER], "crash_times": str(crashes)}
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
        assert (box.shown(box.wanted("a")).restarts, box.shown(box.wanted("a")).breaker.failures) == (2, 0)


async def test_reads_are_repeated_three_times_at_most(tmp_path: Path) -> None:
    async with pool_box(tmp_path, breaker_failures=99) as box:
        box.scripts["a"] = {"crash_on": [HOVER]}
        with pytest.raises(ServerCrashed):
            await box.pool.read(box.wanted("a"), hover)
        assert len(box.located) == 4


async def test_an_error_of_the_server_fails_the_read_and_keeps_the_run(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"errors": {HOVER: [-32603]}}
        with pytest.raises(RequestFailed):
            await box.pool.read(box.wanted("a"), hover)
        assert box.shown(box.wanted("a")).state is RunState.IDLE
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
        assert len(box.located) == 1


async def test_a_crash_that_is_not_the_leased_servers_is_not_repeated(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:

        async def complain(server: LanguageServer) -> None:
            raise ServerCrashed("another", 1, "")

        with pytest.raises(ServerCrashed):
            await box.pool.read(box.wanted("a"), complain)
        assert box.shown(box.wanted("a")).calls == 1


async def test_a_crash_loop_opens_the_breaker_and_callers_get_the_reason_at_once(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        box.scripts["a"] = {"crash_on": [HOVER]}
        for _ in range(5):
            await crash(box)
        with pytest.raises(ServerUnavailable, match=r"failed 5 times in a row \(last: crash.*next restart.* in 60 s"):
            async with box.pool.lease(wanted):
                pass
        assert len(box.located) == 5
        shown = box.shown(wanted).breaker
        assert (shown.state, shown.failures) == ("open", 5)
        assert shown.opens_until is not None
        async with box.pool.lease(box.wanted("b")) as other:
            assert await hover(other) == "v1:x = 1"

        box.clock.advance(60)
        await crash(box)  # the probe
        with pytest.raises(ServerUnavailable, match="failed 6 times in a row"):
            await box.pool.read(wanted, hover)

        box.clock.advance(60)
        box.scripts["a"] = {}
        assert await box.pool.read(wanted, hover) == "v1:x = 1"
        assert (box.shown(wanted).breaker.state, box.shown(wanted).breaker.failures) == ("closed", 0)
        states = [event.data["state"] for event in box.bus.recent() if event.kind == "server.breaker"]
        assert states == ["open", "half_open", "open", "half_open", "closed"]


async def test_while_a_probe_starts_all_others_are_refused_at_once(tmp_path: Path) -> None:
    async with pool_box(tmp_path, breaker_failures=1) as box:
        box.scripts["a"] = {"crash_on": [HOVER]}
        await crash(box)
        box.clock.advance(60)
        box.scripts["a"] = {}
        gate = box.gate("a")
        async with anyio.create_task_group() as tasks:

            async def probe() -> None:
                async with box.pool.lease(box.wanted("a")) as server:
                    assert await hover(server) == "v1:x = 1"

            tasks.start_soon(probe)
            await box.moved("connecting", run=2)
            with pytest.raises(ServerUnavailable, match="one restart is being attempted"):
                async with box.pool.lease(box.wanted("a")):
                    pass
            gate.set()
        assert box.shown(box.wanted("a")).breaker.state == "closed"


async def test_a_person_closes_the_breaker(tmp_path: Path) -> None:
    async with pool_box(tmp_path, breaker_failures=1) as box:
        box.scripts["a"] = {"crash_on": [HOVER]}
        await crash(box)
        box.scripts["a"] = {}
        assert box.pool.close_breaker(box.wanted("a").key, "it was the disk")
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"


async def test_a_restart_by_hand_closes_the_breaker_too(tmp_path: Path) -> None:
    async with pool_box(tmp_path, breaker_failures=1) as box:
        box.scripts["a"] = {"crash_on": [HOVER]}
        await crash(box)
        box.scripts["a"] = {}
        assert await box.pool.restart(box.wanted("a").key, "again")
        assert box.shown(box.wanted("a")).state is RunState.IDLE


async def test_three_unanswered_calls_and_a_failed_ping_replace_a_hung_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with pool_box(tmp_path, health_timeout_s=0.1) as box:
        box.scripts["a"] = {"hang_on": [HOVER], "log": str(log)}
        async with box.pool.lease(box.wanted("a")) as server:
            assert server.pid is not None
        pid = server.pid
        for count in (1, 2):
            await give_up_a_call(box, "a", log, count)
        assert box.shown(box.wanted("a")).state is RunState.IDLE
        os.kill(pid, signal.SIGSTOP)
        with anyio.move_on_after(0.05):
            async with box.pool.lease(box.wanted("a")) as server:
                await hover(server, column=3)
        await box.moved("expired", reason="hang: it left 3 calls in a row without an answer")
        box.scripts["a"] = {}
        async with box.pool.lease(box.wanted("b")) as other:
            assert await hover(other) == "v1:x = 1"
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
        await until_gone(pid)


async def test_a_call_that_waits_for_a_stopped_server_is_told_so_and_answered_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.pool.LOOKED_AT_S", 0.05)
    monkeypatch.setattr("serena_central.pool.run.PROGRESS_S", 0.1)
    async with pool_box(tmp_path, silence_s=0.3, health_timeout_s=0.3) as box:
        async with box.pool.lease(box.wanted("a")) as server:
            assert server.pid is not None
            pid = server.pid
        os.kill(pid, signal.SIGSTOP)
        told: list[str] = []
        with progress.reporting_to(lambda message, _: told.append(message)):
            assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
        assert any(f"Waiting for the language server {box.wanted('a').spec.name}, which has" in one for one in told)
        await box.moved("expired", reason="hang: it left calls waiting")
        await until_gone(pid)


async def test_a_server_that_answers_pings_alone_while_a_call_waits_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.pool.LOOKED_AT_S", 0.05)
    monkeypatch.setattr(
        "serena_central.pool.run.IDLE_SHARE", 0.5
    )  # the scripted server's own, while it is pinged often
    async with pool_box(tmp_path, silence_s=0.2) as box:
        box.scripts["a"] = {"hang_on": [HOVER]}
        async with box.pool.lease(box.wanted("a")):
            box.scripts["a"] = {}  # of the next one
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
        await box.moved("expired", reason="it answered pings alone and used no CPU time")


async def test_a_server_that_says_something_beside_its_pings_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.pool.LOOKED_AT_S", 0.05)
    monkeypatch.setattr("serena_central.pool.run.IDLE_SHARE", 0.5)
    log, ping = tmp_path / "log", "$/serenaCentral/ping"
    works = {"method": "window/logMessage", "params": {"type": 3, "message": "still at it"}}
    async with pool_box(tmp_path, silence_s=0.1) as box:
        box.scripts["a"] = {"hang_on": [HOVER], "say_on": {ping: [works]}, "log": str(log)}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(box.pool.read, box.wanted("a"), hover)
            await logged(log, method=ping, count=8)
            assert box.shown(box.wanted("a")).state is RunState.IN_USE
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("policy", [{"silence_s": 0.1}, {"hang_calls": 1}])
async def test_a_server_for_which_another_program_works_is_slow_but_not_for_ever(
    tmp_path: Path, policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.pool.LOOKED_AT_S", 0.05)
    async with pool_box(tmp_path, health_timeout_s=1.0, unresponsive_s=2.5, **policy) as box:
        box.scripts["a"] = {"work_on": [HOVER]}
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                while True:
                    with anyio.move_on_after(0.3):
                        await box.pool.read(box.wanted("a"), hover)

            tasks.start_soon(ask)
            await box.moved("expired", reason="answered no ping for")
            tasks.cancel_scope.cancel()


async def test_a_server_that_left_a_call_without_an_answer_is_waited_for_shortly_until_it_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.pool.LOOKED_AT_S", 0.05)
    monkeypatch.setattr("serena_central.pool.run.PROGRESS_S", 0.1)
    monkeypatch.setattr("serena_central.pool.run.FURTHER_S", 0.1)
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"hang_on": [HOVER]}
        async with box.pool.lease(box.wanted("a")):
            pass  # it has started: the time below is spent on waiting for its answer
        with anyio.move_on_after(0.5):
            await box.pool.read(box.wanted("a"), hover)
        for _ in range(2):
            with pytest.raises(ServerSilent, match="left an earlier call without an answer"):
                await box.pool.read(box.wanted("a"), hover)
        async with box.pool.lease(box.wanted("a")) as server:
            await server.ping()
        with anyio.move_on_after(0.5) as scope:
            await box.pool.read(box.wanted("a"), hover)
        assert scope.cancelled_caught


async def test_however_many_calls_are_given_up_one_ping_at_a_time_finds_out_about_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    # The ping's time has to be longer than a busy machine takes for four calls.
    async with pool_box(tmp_path, hang_calls=1, health_timeout_s=5.0) as box:
        box.scripts["a"] = {"hang_on": [HOVER, "$/serenaCentral/ping"], "log": str(log)}
        for count in (1, 2, 3, 4):
            await give_up_a_call(box, "a", log, count)
        await box.moved("expired", reason="hang: it left 4 calls in a row without an answer")
    assert len([entry for entry in log_of(log) if entry.get("method") == "$/serenaCentral/ping"]) == 1


async def test_a_server_that_answers_the_ping_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with pool_box(tmp_path, hang_calls=1) as box:
        box.scripts["a"] = {"hang_on": [HOVER], "log": str(log)}
        await give_up_a_call(box, "a", log, 1)
        await logged(log, method="$/serenaCentral/ping")
        await give_up_a_call(box, "a", log, 2)
        await logged(log, method="$/serenaCentral/ping", count=2)
        assert box.shown(box.wanted("a")).state is RunState.IDLE


async def test_an_answer_between_unanswered_calls_starts_the_count_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with pool_box(tmp_path, hang_calls=2) as box:
        box.scripts["a"] = {"hang_on": [HOVER], "log": str(log)}
        for count in (1, 2, 3):
            await give_up_a_call(box, "a", log, count)
            async with box.pool.lease(box.wanted("a")):
                pass
        assert not [entry for entry in log_of(log) if "Ping" in entry.get("method", "").title()]


async def test_a_read_on_a_server_found_to_hang_goes_on_with_the_next_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with pool_box(tmp_path, hang_calls=1, health_timeout_s=0.1) as box:
        box.scripts["a"] = {"freeze_on": [HOVER], "log": str(log)}
        answers: list[str | None] = []
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                answers.append(await box.pool.read(box.wanted("a"), hover))

            tasks.start_soon(ask)
            await logged(log, method=HOVER)
            box.scripts["a"] = {}
            with anyio.move_on_after(0.05):
                async with box.pool.lease(box.wanted("a")) as server:
                    await hover(server, column=1)
        assert answers == ["v1:x = 1"]


async def test_a_hung_server_delays_no_other_project(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box, box.pool.lease(box.wanted("hung")) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hover, server)
            for _ in range(20):
                async with box.pool.lease(box.wanted("b")) as other:
                    assert await hover(other) == "v1:x = 1"
            tasks.cancel_scope.cancel()


async def test_a_server_that_answered_a_call_while_its_health_was_doubted_is_kept(tmp_path: Path) -> None:
    async with pool_box(tmp_path, health_timeout_s=0.05) as box:
        box.scripts["a"] = {"hang_on": ["$/serenaCentral/ping"]}
        async with box.pool.lease(box.wanted("a")):
            pass
        slot = box.pool._slots[box.wanted("a").key]
        run = slot.usable_run()
        assert run is not None
        assert not await run.answers()
        await slot._doubt(run)  # its count of unanswered calls is back at 0
        assert run.life.state is RunState.IDLE


async def test_a_process_that_ends_right_after_its_handshake_is_found_out(tmp_path: Path) -> None:
    async with pool_box(tmp_path, breaker_failures=3) as box:
        box.scripts["a"] = {"crash_on": ["initialized"]}
        with pytest.raises(LanguageServerError):
            await box.pool.read(box.wanted("a"), hover)
        box.scripts["a"] = {}
        box.pool.close_breaker(box.wanted("a").key, "fixed")
        assert await box.pool.read(box.wanted("a"), hover) == "v1:x = 1"
