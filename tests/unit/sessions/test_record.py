"""Sessions are kept in the store as they change, and come back as they were."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import SessionTerminated, StoreError
from serena_central.core.event_kinds import CallFinished
from serena_central.core.events import EventBus
from serena_central.sessions import record
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.session import ActiveProject, ClientIdentity, Session, SessionState
from serena_central.store.store import Store
from tests.support.postgresql import url_for

pytestmark = pytest.mark.anyio

DJANGO = ActiveProject("django", "/src/django")


class Nobody:
    """Nobody wants to know which roots sessions work on."""

    def attach(self, root: str) -> None: ...
    def detach(self, root: str) -> None: ...


class World:
    """One run of a server, as far as sessions go."""

    def __init__(self, store: Store, bus: EventBus, later_s: float) -> None:
        def clock() -> float:
            return time.time() + later_s

        self.store, self.bus = store, bus
        self.sessions = SessionManager(bus=bus, interest=Nobody(), clock=clock)
        self.recorder = SessionRecorder(self.sessions, store, bus, clock=clock)


@asynccontextmanager
async def run_of(database: Path, *, later_s: float = 0) -> AsyncGenerator[World]:
    bus = EventBus()
    store = Store(database, bus, url=url_for(database))
    world = World(store, bus, later_s)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as outer:
            await outer.start(store.run)
            async with anyio.create_task_group() as inner:
                await inner.start(world.recorder.run)
                yield world
                # Recorded when the events are through.
                await anyio.wait_all_tasks_blocked()
                inner.cancel_scope.cancel()
            outer.cancel_scope.cancel()


def identity(**facts: object) -> ClientIdentity:
    return ClientIdentity(**{"credential": "me", "client_name": "codex", **facts})  # type: ignore[arg-type]  # any facts, by name


def finished(session: Session) -> CallFinished:
    return CallFinished(session=session.id, call="c", tool="find_symbol", outcome="ok", duration_ms=1.0)


async def test_a_sessions_counters_go_on(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        session = first.sessions.identify(identity(explicit_id="p-1"))
        session.count("find_symbol", 1.0, failed=False, at=0.0)
        session.count("rename_symbol", 1.0, failed=True, at=0.0)
        session.edits = 3
        first.sessions.activate(session, DJANGO)
    async with run_of(tmp_path / "x.db") as second:
        back = second.sessions.snapshot(second.sessions.get("p-1"))
        assert (back.tool_call_count, back.error_count, back.edit_count) == (2, 1, 3)


@pytest.mark.parametrize(
    ("credential", "killed", "expected"),
    [("me", False, ("me", 8, None)), ("me", True, ("me", 8, "Ada")), ("another", False, ("me", 7, None))],
)
async def test_a_row_that_could_not_be_read_is_not_written_over_however_soon_the_first_call_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    credential: str,
    killed: bool,
    expected: tuple[str, int, str | None],
) -> None:
    async with run_of(tmp_path / "x.db") as first:
        session = first.sessions.identify(identity(explicit_id="p-1"))
        for _ in range(7):
            session.count("find_symbol", 1.0, failed=False, at=0.0)
        first.bus.publish(finished(session))
        if killed:
            first.sessions.terminate("p-1", "Ada")

    async def fails(*_: object, **__: object) -> None:
        raise StoreError("busy")

    monkeypatch.setattr(record, "READ_AGAIN_S", 0.05)
    with monkeypatch.context() as broken:
        broken.setattr(Store, "saved", fails)
        async with run_of(tmp_path / "x.db") as second:
            asked = second.store.ask
            broken.setattr(second.store, "ask", fails)
            again = second.sessions.identify(identity(explicit_id="p-1", credential=credential))
            again.count("find_symbol", 1.0, failed=False, at=0.0)
            second.bus.publish(finished(again))  # no other task had its turn since the session began
            await anyio.sleep(0.2)  # rows that are put have been written
            broken.setattr(second.store, "ask", asked)
            while (again.calls, again.termination) == (1, None):
                await anyio.sleep(0.01)
            await second.store.writer.flush()
            row = await second.store.ask(lambda queries: queries.session("p-1"))
            assert row is not None
            assert (row.credential, row.tool_call_count, row.terminated_by) == expected


async def test_a_session_comes_back_disconnected_with_its_project(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        session = first.sessions.identify(identity(explicit_id="p-1", working_folder="/src", context="ide"))
        first.sessions.activate(session, DJANGO)
    async with run_of(tmp_path / "x.db") as second:
        (back,) = second.sessions.sessions()
        assert second.sessions.snapshot(back).state is SessionState.DISCONNECTED
        assert (back.id, back.active_project, back.working_folder, back.context) == ("p-1", DJANGO, "/src", "ide")
        assert second.sessions.identify(identity(explicit_id="p-1")) is back
        assert second.sessions.snapshot(back).state is SessionState.CONNECTED


@pytest.mark.parametrize("by", ["explicit_id", "transport_id", "conversation_id"])
async def test_a_killed_session_stays_killed(tmp_path: Path, by: str) -> None:
    async with run_of(tmp_path / "x.db") as first:
        first.sessions.terminate(first.sessions.identify(identity(**{by: "a"})).id, "Ada")
    async with run_of(tmp_path / "x.db") as second:
        with pytest.raises(SessionTerminated, match="Ada"):
            second.sessions.identify(identity(**{by: "a"}))


async def test_the_kill_of_a_shared_session_runs_out_when_it_would_have_without_the_restart(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        first.sessions.terminate(first.sessions.identify(identity()).id, "Ada")
        lift_s = first.sessions.policy.shared_kill_lift_s
    async with run_of(tmp_path / "x.db") as second:
        with pytest.raises(SessionTerminated, match="Ada"):
            second.sessions.identify(identity())
    async with run_of(tmp_path / "x.db", later_s=lift_s + 1) as third:
        assert third.sessions.identify(identity()).shared


async def test_who_was_connected_before_a_restart_has_time_to_come_back_however_quiet_it_was(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        first.sessions.identify(identity(explicit_id="quiet"))
        gone = first.sessions.identify(identity(explicit_id="gone"))
        first.sessions.disconnect(gone.id, "it said goodbye")
        retention_s = first.sessions.policy.retention_s
    async with run_of(tmp_path / "x.db", later_s=retention_s + 1) as second:
        second.sessions.sweep()
        assert [session.id for session in second.sessions.sessions()] == ["quiet"]


async def test_a_handshake_is_recalled_for_its_own_credential_alone(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        first.sessions.identify(identity(transport_id="t-1"))
        first.recorder.remember("t-1", "t-1", b"initialize")
        first.recorder.remember("unknown", "unknown", b"initialize")
        assert await first.recorder.recall("t-1", "me") == b"initialize"
        assert await first.recorder.recall("t-1", "you") is None
        assert await first.recorder.recall("unknown", "me") is None
        first.sessions.terminate("t-1", "Ada")
        await anyio.wait_all_tasks_blocked()
        assert await first.recorder.recall("t-1", "me") is None


async def test_the_newest_handshake_of_a_session_with_an_id_of_its_own_is_recalled(tmp_path: Path) -> None:
    async with run_of(tmp_path / "x.db") as first:
        first.sessions.identify(identity(explicit_id="p-1", transport_id="t-1"))
        first.recorder.remember("t-1", "p-1", b"first")
        first.recorder.remember("t-2", "p-1", b"second")
    async with run_of(tmp_path / "x.db") as second:
        assert await second.recorder.recall("t-1", "me") is None
        assert await second.recorder.recall("t-2", "me") == b"second"
        second.recorder.forget("t-1", "p-1")
        assert await second.recorder.recall("t-2", "me") == b"second"
        second.recorder.forget("t-2", "p-1")
        assert await second.recorder.recall("t-2", "me") is None
