"""Servers with one PostgreSQL database learn by notices what the others did, and by asking where no notices come."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.event_kinds import SettingChanged
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.session import ClientIdentity, Session
from tests.support.postgresql import Cluster
from tests.unit.sessions.test_accounts import World

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
                world.recorder = SessionRecorder(world.sessions, world.store, world.bus)
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
    assert world.recorder is not None
    await world.recorder.take_over(session)
    return world.sessions.identify(ClientIdentity(credential="me", explicit_id=session))


async def test_notices_alone_bring_what_another_server_did(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two(cluster.database("notices")) as (one, other):
        monkeypatch.setattr("serena_central.sessions.other_fronts.POLL_S", 3600.0)
        _, token = await one.accounts.add("ada", [], "me", admin=False)
        await until(lambda: other.users.of_token(token.encode()) is not None)
        await one.accounts.revoke("ada", "me")
        await until(lambda: bool(other.lost))
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
