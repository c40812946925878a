"""Users of a team: whom a token lets in, what becomes of sessions when it is taken away, and that servers agree."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import InvalidArguments, UserNotFound
from serena_central.core.events import EventBus
from serena_central.sessions.accounts import Accounts
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.other_fronts import OtherFronts
from serena_central.sessions.record import SessionRecorder
from serena_central.sessions.session import ClientIdentity
from serena_central.sessions.users import MOST_ROOTS, User, Users, new_account, user_name
from serena_central.store.store import Store
from tests.support.postgresql import url_for

pytestmark = pytest.mark.anyio


class Nobody:
    def attach(self, root: str) -> None: ...
    def detach(self, root: str) -> None: ...


class World:
    """One server of those that share a database."""

    def __init__(self, database: Path, *, shared: bool = False, front: str = "", url: str | None = None) -> None:
        self.bus = EventBus()
        self.store = Store(database, self.bus, url=url or url_for(database), shared=shared)
        self.users = Users()
        self.sessions = SessionManager(bus=self.bus, interest=Nobody())
        self.accounts = Accounts(self.users, self.store, self.sessions, self.bus)
        self.refused: list[str] = []
        self.accounts.on_refused.append(lambda user: self.refused.append(user.login))
        self.reloaded = 0
        self.recorder = SessionRecorder(self.sessions, self.store, self.bus)
        self.fronts = OtherFronts(
            self.store, self.sessions, self.accounts, self.recorder, self.bus, front=front, reload_settings=self.reload
        )

    async def reload(self) -> None:
        self.reloaded += 1


@asynccontextmanager
async def server(database: Path, *, shared: bool = False, front: str = "") -> AsyncGenerator[World]:
    world = World(database, shared=shared, front=front)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.store.run)
            await tasks.start(world.accounts.run)
            if shared:
                await tasks.start(world.fronts.run)
            yield world
            tasks.cancel_scope.cancel()


async def test_a_token_lets_its_user_in_until_it_is_rotated_or_revoked(tmp_path: Path) -> None:
    async with server(tmp_path / "x.db") as world:
        users, accounts = world.users, world.accounts
        assert not users.present
        row, token = await accounts.add("ada", [str(tmp_path)], "me", admin=False)
        assert users.present
        assert token not in str(row)
        ada = users.of_token(token.encode())
        assert ada == users.of(row.credential) == users.restricted(row.credential)
        assert ada is not None
        assert (ada.name, user_name(ada.credential)) == ("ada", "ada")
        _, newer = await accounts.rotate("ada", "me")
        assert users.of_token(token.encode()) is None
        renewed = users.of_token(newer.encode())
        assert renewed is not None
        assert (renewed.credential, renewed.login == ada.login) == (ada.credential, False)
        assert world.refused == [ada.login]
        session = world.sessions.identify(ClientIdentity(credential=row.credential, client_name="codex"))
        other = world.sessions.identify(ClientIdentity(credential="another", client_name="codex"))
        await accounts.revoke("ada", "me")
        assert users.of_token(newer.encode()) is None
        assert world.refused == [ada.login, renewed.login]
        assert session.termination is not None
        assert other.termination is None
        nothing = users.restricted(row.credential)  # who is in already may open nothing
        assert nothing is not None
        assert not nothing.may_open(tmp_path)
        assert users.present
        # The name can be given again, to somebody else, who takes over nothing.
        again, _ = await accounts.add("ada", [], "me", admin=False)
        assert again.credential != row.credential
        assert users.restricted(row.credential) == nothing


class Held:
    """Holds back what a store has read."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read, self.go_on = anyio.Event(), anyio.Event()
        monkeypatch.setattr(store, "saved", self._held(store.saved))
        monkeypatch.setattr(store, "ask", self._held(store.ask))

    def _held(self, reading: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def held(*asked: Any, **options: Any) -> Any:
            answer = await reading(*asked, **options)
            if not self.read.is_set():
                self.read.set()
                await self.go_on.wait()
            return answer

        return held


async def test_a_slow_look_at_the_accounts_takes_nothing_from_who_was_added_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path / "x.db") as world:
        held = Held(world.store, monkeypatch)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.accounts.refresh)
            await held.read.wait()
            adding = _Adding(world.accounts)
            tasks.start_soon(adding.run)
            with anyio.move_on_after(0.5):  # as far as it comes while the look lasts
                await adding.done.wait()
            held.go_on.set()
        assert world.users.of_token(adding.token.encode()) is not None
        assert world.refused == []


class _Adding:
    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.token = ""
        self.done = anyio.Event()

    async def run(self) -> None:
        _, self.token = await self._accounts.add("ada", [], "me", admin=False)
        self.done.set()


async def test_who_is_revoked_stays_revoked_though_another_server_is_just_giving_a_new_token(tmp_path: Path) -> None:
    async with server(tmp_path / "x.db") as one, server(tmp_path / "x.db") as two:
        for attempt in range(20):
            name = f"ada{attempt}"
            await one.accounts.add(name, [], "me", admin=False)

            async def rotate(name: str = name) -> None:
                with suppress(UserNotFound):
                    await two.accounts.rotate(name, "me")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rotate)
                await one.accounts.revoke(name, "me")
        assert [row.name for row in await one.accounts.all() if row.revoked_at is None] == []


async def test_one_of_two_who_add_the_same_user_at_once_is_told_that_there_is_one(tmp_path: Path) -> None:
    async with server(tmp_path / "x.db") as one, server(tmp_path / "x.db") as two:
        for attempt in range(20):
            tokens: list[str] = []

            async def add(world: World, name: str = f"ada{attempt}", tokens: list[str] = tokens) -> None:
                with suppress(InvalidArguments):
                    tokens.append((await world.accounts.add(name, [], "me", admin=False))[1])

            async with anyio.create_task_group() as tasks:
                for world in (one, one, two, two):
                    tasks.start_soon(add, world)
            (token,) = tokens
            await one.accounts.refresh()
            assert one.users.of_token(token.encode()) is not None


async def test_users_are_known_after_a_restart(tmp_path: Path) -> None:
    async with server(tmp_path / "x.db") as first:
        _, token = await first.accounts.add("ada", [], "me", admin=True)
    async with server(tmp_path / "x.db") as second:
        await second.accounts.refresh()
        ada = second.users.of_token(token.encode())
        assert ada is not None
        assert second.users.restricted(ada.credential) is None
        assert second.users.refusal("task", ada.credential) is None


async def test_a_server_learns_what_another_one_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.sessions.other_fronts.POLL_S", 0.01)
    async with server(tmp_path / "x.db", shared=True) as one, server(tmp_path / "x.db", shared=True) as two:
        _, token = await one.accounts.add("ada", [], "me", admin=False)
        while two.users.of_token(token.encode()) is None:
            await anyio.sleep(0.01)
        for number, change in enumerate((one.accounts.rotate, one.accounts.revoke)):
            await change("ada", "me")
            while len(two.refused) <= number:
                await anyio.sleep(0.01)


async def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async with server(tmp_path / "x.db") as world:
        await world.accounts.add("ada", [], "me", admin=False)
        with pytest.raises(InvalidArguments, match="already"):
            await world.accounts.add("ada", [], "me", admin=False)
        for missing in (world.accounts.rotate("bob", "me"), world.accounts.revoke("bob", "me")):
            with pytest.raises(UserNotFound):
                await missing
    for name, roots in (
        ("Ada", []),
        ("", []),
        ("a" * 33, []),
        ("a:b", []),
        ("ada", ["relative"]),
        ("ada", ["/a/../b"]),
        ("ada", ["/a/**"]),
        ("ada", ["/a\0"]),
        ("ada", [f"/{number}" for number in range(MOST_ROOTS + 1)]),
    ):
        with pytest.raises(InvalidArguments):
            new_account(name, roots, 0.0, admin=False)


@pytest.mark.parametrize(
    ("patterns", "root", "allowed"),
    [
        ((), "/any/where", True),
        (("/srv/shop",), "/srv/shop", True),
        (("/srv/shop",), "/srv/shop/api", True),
        (("/srv/shop",), "/srv/shopping", False),
        (("/srv/shop",), "/srv", False),
        (("/srv/*/api",), "/srv/shop/api", True),
        (("/srv/*/api",), "/srv/shop/web/api", False),
        (("/srv/shop-[ab]", "/opt"), "/opt/x", True),
        (("/srv/shop-[ab]", "/opt"), "/srv/shop-c", False),
    ],
)
def test_roots_are_folders_and_patterns_of_folders(patterns: tuple[str, ...], root: str, allowed: bool) -> None:
    assert User("ada", "c", roots=patterns).may_open(Path(root)) == allowed
    assert User("ada", "c", admin=True, roots=patterns).may_open(Path(root))


def test_the_roots_of_an_account_are_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "real" / "shop").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    row, _ = new_account("ada", [f"{tmp_path}/link/*"], 0.0, admin=False)
    assert row.roots == [f"{(tmp_path / 'real').resolve()}/*"]


def test_tools_that_act_for_the_whole_server_are_for_administrators() -> None:
    users = Users()
    rows = [new_account(name, [], 0.0, admin=name == "boss")[0] for name in ("ada", "boss")]
    users.take(rows)
    ada, boss = (row.credential for row in rows)
    assert "administrators" in (users.refusal("execute_shell_command", ada) or "")
    assert users.refusal("find_symbol", ada) is None
    for credential in (boss, "the server's own token"):
        assert users.refusal("execute_shell_command", credential) is None
