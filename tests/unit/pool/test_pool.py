"""Leases, single flight, owned starts, and the pool's own end; with real child processes."""

import gc
import os
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from weakref import ref

import anyio
import msgspec
import pytest

from serena_central.config.policies import PoolPolicy
from serena_central.core import progress
from serena_central.core.errors import ServerNotInstalled, ServerStartFailed, ServerUnavailable
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.lsp.answers import FileEvent
from serena_central.pool.key import WantedServer
from serena_central.pool.pool import LanguageServerPool
from serena_central.pool.state import Cause, RunState
from tests.support.fakes import FAKE_SPEC, log_of, logged
from tests.support.pools import PATIENCE_S, hover, pool_box, until_gone

pytestmark = pytest.mark.anyio


async def test_one_server_serves_all_who_want_the_same_and_outlives_each(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as first, box.pool.lease(box.wanted("a")) as second:
            assert first is second
            assert await hover(first) == "v1:x = 1"
            assert (box.shown(wanted).state, box.shown(wanted).leases) == (RunState.IN_USE, 2)
        async with box.pool.lease(wanted) as third:
            assert third is first
        shown = box.shown(wanted)
        assert (shown.state, shown.leases, shown.calls, shown.restarts) == (RunState.IDLE, 0, 3, 0)
        assert (shown.languages, shown.version, shown.pid) == (("python",), "1.0", first.pid)


async def test_other_settings_or_another_root_get_a_server_of_their_own(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        pids: set[int | None] = set()
        for wanted in (box.wanted("a"), box.wanted("a", strict=True), box.wanted("b")):
            async with box.pool.lease(wanted) as server:
                pids.add(server.pid)
        assert len(pids) == 3
        assert len(box.pool.snapshot()) == 3


async def test_each_move_is_published_with_its_reason(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as server:
            pid = server.pid
        await box.pool.stop(wanted.key, "not needed")
        last = await box.moved("disconnected")
        assert [(event.data["from"], event.data["to"], event.data["reason"]) for event in box.seen] == [
            ("disconnected", "connecting", "lease asked"),
            ("connecting", "idle", "initialized"),
            ("idle", "in_use", "lease taken"),
            ("in_use", "idle", "lease returned"),
            ("idle", "expired", "person: not needed"),
            ("expired", "disconnected", "process tree gone: person: not needed"),
        ]
        assert (last.server, last.project, last.data["root"]) == ("fake", str(wanted.root), str(wanted.root))
        assert (last.data["pid"], last.data["run"]) == (pid, 1)
        assert box.shown(wanted).reason == "process tree gone: person: not needed"


async def test_all_who_ask_while_it_starts_wait_for_the_same_start(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        gate = box.gate("a")
        pids: list[int | None] = []

        async def ask() -> None:
            async with box.pool.lease(box.wanted("a")) as server:
                pids.append(server.pid)

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)
            await box.moved("connecting")
            await anyio.wait_all_tasks_blocked()
            assert pids == []
            gate.set()
        assert len(pids) == 8
        assert len(set(pids)) == 1
        assert len(box.located) == 1


async def test_a_start_goes_on_when_its_first_asker_is_cancelled(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        gate = box.gate("a")
        reached = False

        async def ask() -> None:
            nonlocal reached
            async with box.pool.lease(box.wanted("a")):
                reached = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await box.moved("connecting")
            tasks.cancel_scope.cancel()
        gate.set()
        await box.moved("idle")
        assert not reached
        async with box.pool.lease(box.wanted("a")) as server:
            assert await hover(server) == "v1:x = 1"
        assert len(box.located) == 1


async def test_a_server_does_not_inherit_what_its_first_asker_carries_with_it(tmp_path: Path) -> None:
    carried: ContextVar[str] = ContextVar("carried", default="nothing")
    seen: list[str] = []
    async with pool_box(tmp_path) as box:
        carried.set("a call's own")
        wanted = box.wanted("a")
        locate = box.pool._locate

        def look_around(*args: object, **more: object) -> object:
            seen.append(carried.get())
            return locate(*args, **more)  # pyright: ignore

        box.pool._locate = look_around  # pyright: ignore
        async with box.pool.lease(wanted):
            pass
    assert seen == ["nothing"]


async def test_who_waits_for_a_start_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    async with pool_box(tmp_path) as box:
        with progress.reporting_to(lambda message, part: said.append(message)):
            async with box.pool.lease(box.wanted("a")):
                pass
            async with box.pool.lease(box.wanted("a")):
                pass
        assert said == [f"Starting fake for {box.wanted('a').root}"]


async def test_twenty_servers_start_at_once_and_a_slow_one_delays_nobody(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        box.scripts["slow"] = {"never_initialize": True}
        answered: list[str] = []

        async def ask(name: str) -> None:
            async with box.pool.lease(box.wanted(name)) as server:
                await hover(server)
                answered.append(name)

        async with anyio.create_task_group() as slow:
            slow.start_soon(ask, "slow")
            await box.moved("connecting")
            with anyio.fail_after(PATIENCE_S):
                async with anyio.create_task_group() as tasks:
                    for number in range(19):
                        tasks.start_soon(ask, f"p{number}")
            assert len(answered) == 19
            assert box.shown(box.wanted("slow")).state is RunState.CONNECTING
            slow.cancel_scope.cancel()


async def test_a_start_that_takes_too_long_fails_for_all_who_wait(tmp_path: Path) -> None:
    async with pool_box(tmp_path, start_timeout_s=0.3) as box:
        box.scripts["a"] = {"never_initialize": True, "log": str(tmp_path / "log")}
        failures: list[str] = []

        async def ask() -> None:
            with pytest.raises(ServerStartFailed) as failure:
                async with box.pool.lease(box.wanted("a")):
                    pass
            failures.append(str(failure.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        assert len(failures) == 2
        assert failures[0].startswith("fake did not finish its handshake within 0.3 s.")
        await box.moved("disconnected", reason="start deadline passed")
        for entry in log_of(tmp_path / "log"):
            if entry.get("event") == "started":
                await until_gone(entry["pid"])


async def test_a_start_that_fails_says_why_and_the_next_lease_tries_again(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"fail_initialize": "no licence"}
        with pytest.raises(ServerStartFailed, match="no licence"):
            async with box.pool.lease(box.wanted("a")):
                pass
        box.scripts["a"] = {}
        async with box.pool.lease(box.wanted("a")) as server:
            assert await hover(server) == "v1:x = 1"
        assert box.shown(box.wanted("a")).restarts == 1


async def test_a_program_that_is_not_installed_is_no_failure_of_the_server(tmp_path: Path) -> None:
    def nowhere(*_: object, **more: object) -> object:
        raise ServerNotInstalled("fake", "python", "pip install fake")

    async with pool_box(tmp_path) as box:
        box.pool._locate = nowhere  # pyright: ignore
        for _ in range(7):
            with pytest.raises(ServerNotInstalled, match="pip install fake"):
                async with box.pool.lease(box.wanted("a")):
                    pass
        shown = box.shown(box.wanted("a"))
        assert (shown.breaker.failures, shown.restarts, shown.missing) == (0, 0, True)


async def test_a_failed_start_keeps_nothing_alive_of_who_waited_for_it(tmp_path: Path) -> None:
    class Held:
        """What a caller has at hand, such as its project."""

    async def ask(held: Held) -> None:
        with pytest.raises(ServerStartFailed, match="no licence"):
            async with box.pool.lease(box.wanted("a")):
                pass

    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"fail_initialize": "no licence"}
        held = Held()
        gone = ref(held)
        await ask(held)
        del held
        with anyio.fail_after(PATIENCE_S):
            while gone() is not None:
                await anyio.lowlevel.checkpoint()
                gc.collect()


async def test_a_bug_while_starting_is_logged_and_told_to_who_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **more: object) -> object:
        raise RuntimeError("a bug")

    async with pool_box(tmp_path) as box:
        box.pool._locate = broken  # pyright: ignore
        with pytest.raises(ServerStartFailed, match="a bug"):
            async with box.pool.lease(box.wanted("a")):
                pass
    assert "The start of fake failed" in caplog.text


async def test_a_change_on_disk_reaches_every_run_of_its_root_before_the_next_request(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted, other, elsewhere = box.wanted("a"), box.wanted("a", strict=True), box.wanted("b")
        for each in (wanted, other, elsewhere):
            async with box.pool.lease(each) as server:
                assert await hover(server) == "v1:x = 1"
        code = wanted.root / "code.py"
        code.write_text("x = 2\n", encoding="utf-8")
        box.pool.files_changed(wanted.root, [FileEvent(code, "changed")])
        for each in (wanted, other):
            async with box.pool.lease(each) as server:
                assert await hover(server) == "v2:x = 2"
        async with box.pool.lease(elsewhere) as server:
            assert await hover(server) == "v1:x = 1"


async def test_a_change_while_the_program_is_looked_for_has_nobody_to_go_to(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        gate, wanted = box.gate("a"), box.wanted("a")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                async with box.pool.lease(wanted) as server:
                    assert await hover(server) == "v1:y = 1"

            tasks.start_soon(ask)
            await box.moved("connecting")
            code = wanted.root / "code.py"
            code.write_text("y = 1\n", encoding="utf-8")
            box.pool.files_changed(wanted.root, [FileEvent(code, "changed")])
            gate.set()


async def test_restart_gives_the_next_caller_a_fresh_process(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as server:
            before = server.pid
        assert await box.pool.restart(wanted.key, "it looked confused")
        after = box.shown(wanted)
        assert (after.state, after.restarts) == (RunState.IDLE, 1)
        assert after.pid != before
        assert before is not None
        assert not Path(f"/proc/{before}").exists()
        await box.moved("connecting", reason="person: it looked confused")


async def test_restart_says_why_the_fresh_start_failed(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted):
            pass
        box.scripts["a"] = {"fail_initialize": "no licence"}
        with pytest.raises(ServerStartFailed, match="no licence"):
            await box.pool.restart(wanted.key, "new settings")


async def test_who_waits_for_a_start_that_is_restarted_waits_for_the_next_one(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        wanted, log = box.wanted("a"), tmp_path / "log"
        box.scripts["a"] = {"never_initialize": True, "log": str(log)}
        answers: list[str | None] = []

        async def read() -> None:
            answers.append(await box.pool.read(wanted, hover))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await logged(log, event="started")
            tasks.start_soon(box.pool.restart, wanted.key, "it is slow")
            await logged(log, event="started", count=2)
            del box.scripts["a"]
            tasks.start_soon(box.pool.restart, wanted.key, "it is still slow")
        assert answers == ["v1:x = 1"]
        assert (box.shown(wanted).run, box.shown(wanted).state) == (3, RunState.IDLE)


async def test_who_waits_for_a_start_that_other_settings_end_goes_on_by_these(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        before, after, log = box.wanted("a"), box.wanted("a", strict=True), tmp_path / "log"
        box.scripts["a"] = {"never_initialize": True, "log": str(log)}
        answers: list[str | None] = []

        async def read(again: Callable[[], WantedServer] | None) -> None:
            answers.append(await box.pool.read(before, hover, again))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, lambda: after)
            tasks.start_soon(read, None)
            await logged(log, event="started")
            del box.scripts["a"]
            box.pool.replace(before.key, "project.yml")
        assert answers == ["v1:x = 1"] * 2
        assert [(shown.key, shown.run) for shown in box.pool.snapshot()] == [(before.key, 2), (after.key, 1)]


async def test_a_stopped_start_tells_those_who_wait_by_whom(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"never_initialize": True, "log": str(tmp_path / "log")}
        wanted = box.wanted("a")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ServerUnavailable, match=r"stopped \(person\): too slow"):
                    async with box.pool.lease(wanted):
                        pass

            tasks.start_soon(ask)
            pid = (await logged(tmp_path / "log", event="started"))["pid"]
            assert await box.pool.stop(wanted.key, "too slow")
        await box.moved("disconnected", reason="person: ")
        await until_gone(pid)


async def test_stop_ends_the_calls_that_run(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        box.scripts["a"] = {"hang_on": ["textDocument/hover"], "log": str(tmp_path / "log")}
        wanted = box.wanted("a")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(ServerUnavailable, match="was stopped"):
                    async with box.pool.lease(wanted) as server:
                        await hover(server)

            tasks.start_soon(ask)
            await logged(tmp_path / "log", method="textDocument/hover")
            await box.pool.stop(wanted.key, "enough")
        assert box.shown(wanted).state is RunState.DISCONNECTED


async def test_after_a_change_of_settings_running_calls_may_end_first(tmp_path: Path) -> None:
    async with pool_box(tmp_path, stop_timeout_s=0.01) as box:
        wanted = box.wanted("a")
        async with box.pool.lease(wanted) as server:
            await box.pool.stop(wanted.key, "project.yml", cause=Cause.SETTINGS_CHANGED)
            assert (box.shown(wanted).state, box.shown(wanted).draining) == (RunState.EXPIRED, True)
            assert await hover(server) == "v1:x = 1"
        await box.moved("disconnected", reason="settings changed")


async def test_unknown_keys_are_said_to_be_unknown(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        key = box.wanted("a").key
        assert not await box.pool.restart(key, "")
        assert not await box.pool.stop(key, "")
        assert not box.pool.close_breaker(key, "")


async def test_the_end_of_the_pool_leaves_no_process_and_tells_who_waits(tmp_path: Path) -> None:
    refused: list[str] = []
    pids: list[int] = []
    async with anyio.create_task_group() as callers:
        async with pool_box(tmp_path) as box:
            box.scripts["hung"] = {"hang_on": ["textDocument/hover"], "log": str(tmp_path / "hung.log")}
            box.scripts["slow"] = {"never_initialize": True, "log": str(tmp_path / "slow.log")}

            async def ask(name: str) -> None:
                with pytest.raises(ServerUnavailable):
                    await box.pool.read(box.wanted(name), hover)
                refused.append(name)

            async with box.pool.lease(box.wanted("idle")) as server:
                pids.append(server.pid or 0)
            callers.start_soon(ask, "hung")
            callers.start_soon(ask, "slow")
            await logged(tmp_path / "hung.log", method="textDocument/hover")
            pids.append((await logged(tmp_path / "hung.log", event="started"))["pid"])
            pids.append((await logged(tmp_path / "slow.log", event="started"))["pid"])
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert box.places.ledger_file.read_bytes().endswith(b'"children":[]}')
        with pytest.raises(ServerUnavailable, match="not running"):
            async with box.pool.lease(box.wanted("new")):
                pass
    assert sorted(refused) == ["hung", "slow"]


async def test_a_stop_ladder_that_takes_too_long_is_cut_short_at_the_end(tmp_path: Path) -> None:
    async with pool_box(tmp_path, shutdown_timeout_s=0.05) as box:
        box.scripts["a"] = {"ignore_eof": True, "ignore_sigterm": True, "ignore_shutdown": True}
        async with box.pool.lease(box.wanted("a")) as server:
            pid = server.pid
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()
    assert box.shown(box.wanted("a")).state is RunState.DISCONNECTED


async def test_a_pool_that_does_not_run_gives_no_lease(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        pool = LanguageServerPool(bus=EventBus(), places=Places(tmp_path / "other"), policy=PoolPolicy())
        with pytest.raises(ServerUnavailable, match="not running"):
            async with pool.lease(box.wanted("a")):
                pass
        assert pool.snapshot() == []


async def test_children_carry_the_owner_token(tmp_path: Path) -> None:
    async with pool_box(tmp_path) as box:
        async with box.pool.lease(box.wanted("a", FAKE_SPEC)) as server:
            environment = Path(f"/proc/{server.pid}/environ").read_bytes()
        assert os.fsencode(f"SERENA_CENTRAL_OWNER={box.pool._ledger.owner}") in environment.split(b"\0")


async def test_an_exclusive_server_ends_before_its_successor_starts(tmp_path: Path) -> None:
    alone = msgspec.structs.replace(FAKE_SPEC, exclusive=True)
    async with pool_box(tmp_path, max_calls=1) as box:
        wanted = box.wanted("a", alone)
        async with box.pool.lease(wanted) as server:
            first = server.pid
            assert first is not None
            async with anyio.create_task_group() as tasks:
                successors: list[bool] = []

                async def ask() -> None:
                    async with box.pool.lease(wanted):
                        successors.append(Path(f"/proc/{first}").exists())

                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                assert len(box.located) == 1
                tasks.cancel_scope.cancel()
        async with box.pool.lease(wanted) as server:
            assert server.pid != first
            assert not Path(f"/proc/{first}").exists()
        assert successors == []
