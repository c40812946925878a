"""What a server does about notices of others, which come by a pipe here, and about sessions that come from them."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import SessionNotFound
from serena_central.sessions.other_fronts import KILLED, REVIVED, SETTINGS
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.session import ClientIdentity
from serena_central.store.rows import ACCOUNTS, Notice
from tests.unit.sessions.test_accounts import World

pytestmark = pytest.mark.anyio


class Pipe:
    """Stands for the connection on which notices come."""

    def __init__(self) -> None:
        self.fileno, self._end = os.pipe()
        self._notices: list[Notice] | None = []
        self.closed = 0

    def send(self, *notices: Notice, lost: bool = False) -> None:
        self._notices = None if lost else [*notices]
        os.write(self._end, b"x")

    def read(self) -> list[Notice] | None:
        os.set_blocking(self.fileno, False)
        try:
            os.read(self.fileno, 100)
        except BlockingIOError:
            return []
        found, self._notices = self._notices, []
        return found

    def close(self) -> None:
        self.closed += 1


@asynccontextmanager
async def listening(folder: Path, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[World, World]]:
    """A server that listens, and another one on the same database."""

    async def listener() -> Pipe:
        return pipe

    one, other = (World(folder / "x.db", shared=True, front=front) for front in ("f1", "f2"))
    monkeypatch.setattr(one.store, "listener", listener)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for world in (one, other):
                await tasks.start(world.store.run)
                await tasks.start(world.accounts.run)
                await tasks.start(SessionRecorder(world.sessions, world.store, world.bus).run)
            await tasks.start(one.fronts.run)
            while not one.fronts.listening:
                await anyio.sleep(0.005)
            yield one, other
            tasks.cancel_scope.cancel()
    assert pipe.closed == 1


async def test_each_kind_of_notice_is_taken_and_a_servers_own_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Pipe()
    async with listening(tmp_path, pipe, monkeypatch) as (one, other):
        session = one.sessions.identify(ClientIdentity(credential="me", explicit_id="s-1"))
        pipe.send(Notice(KILLED, "s-1", "f1"), Notice(KILLED, "s-unknown", "f2"), Notice(SETTINGS, "", "f2"))
        while not one.reloaded:
            await anyio.sleep(0.005)
        assert session.termination is None
        pipe.send(Notice(KILLED, "s-1", "f2"))
        while session.termination is None:
            await anyio.sleep(0.005)
        pipe.send(Notice(REVIVED, "s-1", "f2"))
        while session.termination is not None:
            await anyio.sleep(0.005)
        await other.accounts.add("ada", [], "me", admin=False)
        pipe.send(Notice(ACCOUNTS, "", "f2"))
        while not one.users.present:
            await anyio.sleep(0.005)
        _, token = await other.accounts.add("eve", [], "me", admin=False)
        pipe.send(lost=True)
        while one.users.of_token(token.encode()) is None:
            await anyio.sleep(0.005)


async def test_a_session_of_another_server_is_taken_over_when_it_comes(tmp_path: Path) -> None:
    one, other = (World(tmp_path / "x.db", shared=True, front=front) for front in ("f1", "f2"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            recorders = [SessionRecorder(world.sessions, world.store, world.bus) for world in (one, other)]
            for world, recorder in zip((one, other), recorders, strict=True):
                await tasks.start(world.store.run)
                await tasks.start(recorder.run)
            one.sessions.identify(ClientIdentity(credential="me", explicit_id="s-1", client_name="codex"))
            await one.store.writer.flush()
            while await one.store.ask(lambda queries: queries.session("s-1")) is None:
                await anyio.sleep(0.005)
            with pytest.raises(SessionNotFound):
                other.sessions.get("s-1")
            for name in ("s-1", "s-1", "s-nobody"):
                await recorders[1].take_over(name)
            assert other.sessions.get("s-1").client_name == "codex"
            with pytest.raises(SessionNotFound):
                other.sessions.get("s-nobody")
            tasks.cancel_scope.cancel()
