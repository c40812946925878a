"""Whoever gives up a call, the language server hears of it; and only when nobody waits for that answer any more.

The deadline's cancel is in `test_fault_rows.py`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.mcp_server import conversation
from tests.support.central import RunningCentral, running_central
from tests.support.fakes import logged, methods_of
from tests.support.mcp import Era, RawClient, sdk_client
from tests.support.proxy import proxying
from tests.support.scripted import REFERENCES, SYMBOLS, log_in, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

ERAS: tuple[Era, ...] = ("handshake", "modern")

WHO_USES = {"name_path": "Cart/total"}

GiveUp = Callable[[], Awaitable[Any]]


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    scripted_ty(tmp_path)
    scripted_project(tmp_path, hang_on=[REFERENCES])
    async with running_central(tmp_path) as running:
        yield running


@asynccontextmanager
async def by_official_client(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    """Cancels the task that called: the client tells the server in its era's way."""
    async with (
        sdk_client(central.url, era, central.authorized | {"x-serena-session": "one"}) as client,
        anyio.create_task_group() as tasks,
    ):
        await client.call_tool("activate_project", {"project": str(root)})
        tasks.start_soon(client.call_tool, "find_referencing_symbols", WHO_USES)

        async def give_up() -> None:
            tasks.cancel_scope.cancel()

        yield give_up


@asynccontextmanager
async def by_hanging_up(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    async with central.raw(era, x_serena_session="one") as client, anyio.create_task_group() as tasks:
        await client.call("activate_project", project=str(root))
        tasks.start_soon(lambda: client.call("find_referencing_symbols", **WHO_USES))

        async def give_up() -> None:
            tasks.cancel_scope.cancel()

        yield give_up


@asynccontextmanager
async def by_hanging_up_on_the_api(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    arguments = {**WHO_USES, "project": str(root)}
    async with central.http() as http, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: http.post("/api/v1/tools/find_referencing_symbols", json={"arguments": arguments}))

        async def give_up() -> None:
            tasks.cancel_scope.cancel()

        yield give_up


@asynccontextmanager
async def by_a_client_of_the_proxy(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    """Whose request is not answered any more."""
    async with proxying(root.parent, era, "--url", f"{central.url}/mcp") as client:
        await client.open()
        await client.call("activate_project", project=str(root))
        params = {"name": "find_referencing_symbols", "arguments": WHO_USES}
        asked = await client.begin("tools/call", params)
        yield lambda: client.notify("notifications/cancelled", {"requestId": asked})
        await client.ask("tools/list")
        assert asked not in client.answers


@asynccontextmanager
async def by_killing_the_proxy(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    async with proxying(root.parent, era, "--url", f"{central.url}/mcp") as client:
        await client.open()
        await client.call("activate_project", project=str(root))
        await client.begin("tools/call", {"name": "find_referencing_symbols", "arguments": WHO_USES})

        async def give_up() -> None:
            client.process.kill()

        yield give_up


@asynccontextmanager
async def by_killing_the_session(central: RunningCentral, root: Path, era: Era) -> AsyncGenerator[GiveUp]:
    """The call is answered, with who killed it."""
    said: list[dict[str, Any]] = []
    async with central.raw(era, x_serena_session="one") as client:
        await client.call("activate_project", project=str(root))

        async def ask() -> None:
            said.append(await client.call("find_referencing_symbols", **WHO_USES))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            yield lambda: client.http.delete("/api/v1/sessions/one", params={"by": "ann"})
    assert said[0]["isError"]
    assert "ann" in said[0]["content"][0]["text"]


WAYS = (
    by_official_client,
    by_hanging_up,
    by_a_client_of_the_proxy,
    by_killing_the_proxy,
    by_killing_the_session,
)


@pytest.mark.parametrize(
    ("asking", "era"),
    [
        *((way, era) for way in WAYS for era in ERAS),
        (by_hanging_up_on_the_api, "modern"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__.replace("_", " "),
)
async def test_a_call_given_up_is_cancelled_in_the_language_server(
    central: RunningCentral, tmp_path: Path, asking: Any, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "RESUMED_WITHIN_S", 0)  # who hangs up could come back until then
    async with asking(central, tmp_path / "shop", era) as give_up:
        asked = await logged(log_in(tmp_path), method=REFERENCES)
        await give_up()
    cancelled = await logged(log_in(tmp_path), method="$/cancelRequest")
    assert cancelled["params"] == {"id": asked["id"]}
    with anyio.fail_after(60):
        while any(session.running for session in central.central.sessions.sessions()):
            await anyio.sleep(0.01)
        while central.central.pool.snapshot()[0].state != "idle":
            await anyio.sleep(0.01)


async def test_a_notification_cancels_a_call_of_the_handshake_era(central: RunningCentral, tmp_path: Path) -> None:
    async with central.raw("handshake") as client, anyio.create_task_group() as tasks:
        await client.call("activate_project", project=str(tmp_path / "shop"))
        request = client.request("tools/call", {"name": "find_referencing_symbols", "arguments": WHO_USES})
        tasks.start_soon(client.http.send, request)
        asked = await logged(log_in(tmp_path), method=REFERENCES)
        await client.notify("notifications/cancelled", {"requestId": client._next_id})
        cancelled = await logged(log_in(tmp_path), method="$/cancelRequest")
        assert cancelled["params"] == {"id": asked["id"]}
        tasks.cancel_scope.cancel()


def waiters(central: RunningCentral) -> int:
    """How many wait for one and the same answer of the one language server."""
    (slot,) = central.central.pool._slots.values()
    run = slot.usable_run()
    assert run is not None
    return max((one._waiters for one in run.server._lsp_session.connection._pending.values()), default=0)


async def test_identical_reads_are_asked_once_and_cancelled_when_the_last_waiter_has_left(
    central: RunningCentral, tmp_path: Path
) -> None:
    root, log = tmp_path / "shop", log_in(tmp_path)
    waiting: dict[Era, anyio.CancelScope] = {}

    async def ask(client: RawClient) -> None:
        with anyio.CancelScope() as waiting[client.era]:
            await client.call("find_referencing_symbols", **WHO_USES)

    def running() -> int:
        return sum(len(session.running) for session in central.central.sessions.sessions())

    async with (
        central.raw("handshake") as one,
        central.raw("modern", x_serena_session="two") as two,
        central.raw("modern", x_serena_session="three") as bystander,
    ):
        for client in (one, two, bystander):
            await client.call("activate_project", project=str(root))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, one)
            asked = await logged(log, method=REFERENCES)
            tasks.start_soon(ask, two)
            with anyio.fail_after(60):
                while waiters(central) < 2:
                    await anyio.sleep(0.01)
            waiting["handshake"].cancel()
            with anyio.fail_after(60):
                while running() > 1:
                    await anyio.sleep(0.01)
            (root / "fresh.py").write_text("class Cart: ...\n")
            await bystander.call("get_symbols_overview", relative_path="fresh.py")
            await logged(log, method=SYMBOLS, count=2)  # the server has read all that was sent before this
            assert "$/cancelRequest" not in methods_of(log)
            waiting["modern"].cancel()
            cancelled = await logged(log, method="$/cancelRequest")
    assert cancelled["params"] == {"id": asked["id"]}
    assert methods_of(log).count(REFERENCES) == 1
    assert methods_of(log).count("$/cancelRequest") == 1
