"""Servers with one PostgreSQL database learn by notices what the others did, and by asking where no notices come."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import SessionTerminated
from serena_central.core.event_kinds import SettingChanged
from serena_central.sessions.session import ActiveProject, ClientIdentity, Session
from tests.support.postgresql import Cluster
from tests.unit.sessions.test_accounts import Held, World

pytestmark = [pytest.mark.anyio, pytest.mark.postgresql]


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@asynccontextmanager
async def two(url: str) -> AsyncGenerator[tuple[World, World]]:
    """Two servers, when both listen."""
    worlds = [World(Path("/nowhere"), shared=True, front=front, url=url) for front in ("f1", "f2")]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for world in worlds:
                await tasks.start(world.store.run)
                await tasks.start(world.recorder.run)
                await tasks.start(world.accounts.run)
                await tasks.start(world.fronts.run)
            await until(lambda: all(world.fronts.listening for world in worlds))
            yield worlds[0], worlds[1]
            tasks.cancel_scope.cancel()


async def until(fits: Callable[[], bool]) -> None:
    while not fits():
        await anyio.sleep(0.005)


async def held_by(world: World, session: str = "s-1") -> Session:
    """A session that comes to this server, as the endpoint has it begin."""
    await world.recorder.take_over(session)
    return world.sessions.identify(ClientIdentity(credential="me", explicit_id=session))


async def test_notices_alone_bring_what_another_server_did(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two(cluster.database("notices")) as (one, other):
        monkeypatch.setattr("serena_central.sessions.other_fronts.POLL_S", 3600.0)
        _, token = await one.accounts.add("ada", [], "me", admin=False)
        await until(lambda: other.users.of_token(token.encode()) is not None)
        await one.accounts.rotate("ada", "me")
        await until(lambda: len(other.refused) == 1)
        await one.accounts.revoke("ada", "me")
        await until(lambda: len(other.refused) == 2)
        mine, theirs = await held_by(one), await held_by(other)
        one.sessions.terminate("s-1", "me")
        await until(lambda: theirs.termination is not None)
        other.sessions.revive("s-1")
        await until(lambda: mine.termination is None)
        one.bus.publish(SettingChanged(message="x", key="x", before=None, after=None))
        await until(lambda: other.reloaded == 1)
        # Nothing was sent back: what is done because of a notice is no news.
        await one.accounts.add("eve", [], "me", admin=True)
        await until(lambda: other.users.present and len(other.users._by_digest) == 1)
        assert (mine.termination, theirs.termination, one.reloaded) == (None, None, 0)


async def test_more_notices_than_the_driver_keeps_are_no_loss(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(cluster.database("many")) as (one, other):
        monkeypatch.setattr("serena_central.sessions.other_fronts.POLL_S", 3600.0)
        names = [f"s-{number}" for number in range(300)]
        theirs = [await held_by(other, name) for name in names]
        for name in names:
            await held_by(one, name)
            one.sessions.terminate(name, "me")
        await one.store.writer.flush()
        await until(lambda: all(session.termination is not None for session in theirs))


async def test_what_happened_while_no_notices_came_is_learnt_from_the_database(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.sessions.other_fronts.POLL_S", 0.05)
    async with two(cluster.database("lost")) as (one, other):
        theirs = await held_by(other)
        await held_by(one)
        await one.store.writer.flush()
        cluster.execute("CHECKPOINT")  # the tests' cluster does not wait for the disk
        cluster.kill()
        await until(lambda: not (one.fronts.listening or other.fronts.listening))
        one.sessions.terminate("s-1", "me")
        cluster.start()
        await until(lambda: theirs.termination is not None)
        await until(lambda: one.fronts.listening and other.fronts.listening)


async def test_a_session_that_is_killed_while_it_is_taken_over_stays_killed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(cluster.database("taken_over")) as (one, other):
        await held_by(one)
        await one.store.writer.flush()
        held = Held(other.store, monkeypatch)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.recorder.take_over, "s-1")
            await held.read.wait()  # the row says that it lives
            one.sessions.terminate("s-1", "Ada")
            await one.store.writer.flush()
            await until(lambda: other.recorder.news > 0)
            held.go_on.set()
        with pytest.raises(SessionTerminated):
            await held_by(other)


async def test_who_is_revived_is_not_killed_again_by_a_look_at_the_database(cluster: Cluster) -> None:
    async with two(cluster.database("revived")) as (one, _):
        session = await held_by(one)
        one.sessions.terminate("s-1", "Ada")
        await one.store.writer.flush()
        one.sessions.revive("s-1")
        await one.fronts.catch_up()
        assert session.termination is None


async def test_a_session_that_comes_back_to_a_server_is_what_it_was_at_the_other_one(cluster: Cluster) -> None:
    async with two(cluster.database("back")) as (one, other):
        first = await held_by(one)
        one.sessions.activate(first, ActiveProject("shop", "/src/shop"))
        await one.store.writer.flush()
        there = await held_by(other)
        assert there.active_project == ActiveProject("shop", "/src/shop")
        other.sessions.activate(there, ActiveProject("bank", "/src/bank"))
        other.sessions.switch_modes(there, ["review"])
        await other.store.writer.flush()
        await until(lambda: one.recorder.news > 0)
        one.sessions.disconnect("s-1", "it was idle for too long")  # the copy that nobody uses any more
        await one.store.writer.flush()
        back = await held_by(one)
        assert (back.active_project, back.modes) == (ActiveProject("bank", "/src/bank"), ("review",))
        one.sessions.activate(back, ActiveProject("shop", "/src/shop"))
        await one.store.writer.flush()
        await until(lambda: other.recorder.news > 0)
        assert (await held_by(other)).active_project == ActiveProject("shop", "/src/shop")


async def test_looking_at_a_session_takes_it_from_nobody(cluster: Cluster) -> None:
    async with two(cluster.database("looked_at")) as (one, other):
        first = await held_by(one)
        await one.store.writer.flush()
        await other.recorder.take_over("s-1")  # as its page does
        one.sessions.activate(first, ActiveProject("shop", "/src/shop"))
        await one.store.writer.flush()
        other.sessions.sweep()
        assert await held_by(one) is first
        await other.recorder.take_over("s-1")
        assert other.sessions.get("s-1").active_project == ActiveProject("shop", "/src/shop")
