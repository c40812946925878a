"""What is installed, when, how often, and what is said about it; the installation itself is a stand-in here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec.structs
import pytest

from serena_central.core.errors import InstallFailed
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.core.progress import reporting_to
from serena_central.lsp.catalogue import InstallRecipe, ServerSpec
from serena_central.lsp.installers.auto import RETRY_AFTER_S, AutoInstaller
from serena_central.lsp.installers.install import Installed
from serena_central.lsp.installers.record import UNFINISHED
from serena_central.lsp.installers.underway import LOCK
from tests.support.fakes import FAKE_SPEC

pytestmark = pytest.mark.anyio


def spec_via(*methods: Any, name: str = "fake") -> ServerSpec:
    recipes = tuple(InstallRecipe(via=via, packages=("x",), version="1", binary="bin/x") for via in methods)
    return msgspec.structs.replace(FAKE_SPEC, name=name, install=recipes)


class World:
    """An installer whose installations end when `let_go` is set, well or with `error`."""

    def __init__(self, folder: Path, allowed: Any = "pinned") -> None:
        self.bus = EventBus()
        self.now = 0.0
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.running = 0
        self.most_running = 0
        self.let_go = anyio.Event()
        self.error: Exception | None = None
        self.installer = AutoInstaller(
            Places(folder), self.bus, allowed=allowed, install=self._install, clock=lambda: self.now
        )

    async def _install(self, spec: ServerSpec, places: Places, *, methods: tuple[str, ...], tell: Any) -> Installed:
        self.asked.append((spec.name, methods))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.let_go.wait()
        finally:
            self.running -= 1
        if self.error:
            raise self.error
        return Installed(server=spec.name, version="1", via="pip", folder=None, fresh=True, seconds=2)

    async def until(self, kind: str) -> None:
        with anyio.fail_after(60):
            while kind not in self.kinds():
                await anyio.lowlevel.checkpoint()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.bus.recent()]


@asynccontextmanager
async def running(world: World) -> AsyncGenerator[World]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(world.installer.run)
        yield world
        tasks.cancel_scope.cancel()


async def test_a_missing_server_is_installed_once_and_whoever_asks_is_told(tmp_path: Path) -> None:
    async with running(World(tmp_path)) as world:
        said = world.installer.want(spec_via("pip"))
        assert said
        assert said.startswith(
            "The language server fake is being installed; until then, answers for its files are incomplete"
        )
        assert world.installer.want(spec_via("pip")) == said
        assert world.installer.is_working
        world.let_go.set()
        await world.until("server.install.finished")
        assert not world.installer.is_working
        assert world.asked == [("fake", ("pip", "npm"))]
        finished = world.bus.recent()[-1]
        assert (finished.server, finished.message) == ("fake", "installed fake 1 by pip in 2 s")
        assert world.kinds() == ["server.install.started", "server.install.finished"]


@pytest.mark.parametrize(
    ("allowed", "methods", "begins"),
    [
        ("off", ("pip",), False),
        ("pinned", ("npm",), True),
        ("pinned", ("go", "cargo", "apt", "toolchain", "manual"), False),
        ("all", ("go",), True),
        ("all", ("toolchain", "manual", "path"), False),
    ],
)
async def test_the_setting_decides_which_methods_are_used(
    tmp_path: Path, allowed: str, methods: tuple[str, ...], begins: bool
) -> None:
    async with running(World(tmp_path, allowed)) as world:
        assert (world.installer.want(spec_via(*methods)) is not None) == begins


async def test_a_failure_is_told_with_its_reason_and_tried_again_only_after_a_while(tmp_path: Path) -> None:
    async with running(World(tmp_path)) as world:
        world.error = InstallFailed("fake", "no network")
        world.let_go.set()
        world.installer.want(spec_via("pip"))
        await world.until("server.install.failed")
        world.now = RETRY_AFTER_S - 1
        said = world.installer.want(spec_via("pip"))
        assert said
        assert said.startswith("Installing the language server fake failed: no network\nTo install it: ")
        assert len(world.asked) == 1
        world.now, world.error = RETRY_AFTER_S, None
        said = world.installer.want(spec_via("pip"))
        assert said
        assert said.startswith("The language server fake is being installed")
        await world.until("server.install.finished")


async def test_a_defect_of_ours_is_a_failure_of_that_installation_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(World(tmp_path)) as world:
        world.error = ZeroDivisionError("oops")
        world.let_go.set()
        world.installer.want(spec_via("pip"))
        await world.until("server.install.failed")
        assert "ZeroDivisionError" in caplog.text


async def test_only_a_few_run_at_once(tmp_path: Path) -> None:
    async with running(World(tmp_path)) as world:
        for name in ("a", "b", "c", "d"):
            world.installer.want(spec_via("pip", name=name))
        await anyio.wait_all_tasks_blocked()
        assert world.running == 2
        world.let_go.set()
        await anyio.wait_all_tasks_blocked()
        assert len(world.asked) == 4
        assert world.most_running == 2


async def test_a_folder_that_can_not_be_locked_keeps_others_from_nothing(tmp_path: Path) -> None:
    servers = Places(tmp_path).servers
    (servers / "another-users" / LOCK).mkdir(parents=True)  # opening it fails, for root, too
    left = servers / "own" / f"{UNFINISHED}1"
    left.mkdir(parents=True)
    (servers / "own" / LOCK).touch()
    async with running(World(tmp_path)):
        with anyio.fail_after(5):
            while left.exists():
                await anyio.lowlevel.checkpoint()


async def test_nothing_begins_while_it_does_not_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.installer.want(spec_via("pip")) is None
    async with running(world):
        world.installer.want(spec_via("pip"))
        await anyio.wait_all_tasks_blocked()
        assert world.running == 1
    assert world.running == 0
    assert world.installer.want(spec_via("pip")) is None


@pytest.mark.parametrize("error", [None, InstallFailed("fake", "no network")])
async def test_who_waits_for_an_installation_goes_on_when_it_is_over_however_it_ended(
    tmp_path: Path, error: Exception | None
) -> None:
    said: list[str] = []
    async with running(World(tmp_path)) as world:
        world.error = error
        assert not await world.installer.settled(spec_via("pip"))
        world.installer.want(spec_via("pip"))

        async def wait() -> None:
            with reporting_to(lambda message, _part: said.append(message)):
                assert await world.installer.settled(spec_via("pip"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            while not said:
                await anyio.lowlevel.checkpoint()
            world.let_go.set()
        assert said == ["installing the missing fake"]
        assert not await world.installer.settled(spec_via("pip"))
