"""A pool over scripted language servers, its news, and a clock that tests turn."""

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from serena_central.config.policies import PoolPolicy
from serena_central.core.events import Event, EventBus, Subscription
from serena_central.core.places import Places
from serena_central.core.text import Position
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import Launch
from serena_central.pool.key import WantedServer
from serena_central.pool.pool import LanguageServerPool
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.processes.usage import Usage
from tests.support.fakes import FAKE_SPEC, fake_launch, text_of

PATIENCE_S = 60
"""Far more than anything here takes, on a machine that does much else."""


class FakeClock:
    """Stands still until it is turned."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class PoolBox:
    """A running pool. `scripts` maps a root's name to its server's script, and may change between starts."""

    def __init__(self, folder: Path, policy: PoolPolicy, clock: FakeClock, bus: EventBus, news: Subscription) -> None:
        self.folder = folder
        self.places = Places(folder / "home")
        self.clock = clock
        self.scripts: dict[str, dict[str, Any]] = {}
        self.gates: dict[str, threading.Event] = {}
        self.located: list[Path] = []
        self.limits_mb: list[int] = []
        """What each server that was started was to keep to."""
        self.memory_mb: dict[str, int] = {}
        """Root's name → what its server is measured to take; of others what it does."""
        self.free_bytes = 1 << 40
        """What the machine has left."""
        self.seen: list[Event] = []
        self.bus = bus
        self._news = news
        self.pool = LanguageServerPool(
            bus=bus,
            places=self.places,
            policy=policy,
            locate=self._locate,
            clock=clock,
            usage=self._usage,
            free_memory=lambda: self.free_bytes,
        )

    def wanted(self, name: str = "a", spec: ServerSpec = FAKE_SPEC, **settings: Any) -> WantedServer:
        """A server for the root of that name, which holds `code.py`."""
        root = self.folder / name
        root.mkdir(exist_ok=True)
        (root / "code.py").write_text("x = 1\n", encoding="utf-8")
        return WantedServer(spec, root, settings, text_of, None)

    def gate(self, name: str) -> threading.Event:
        """Holds the starts of that root back, before their process is spawned, until the event is set."""
        return self.gates.setdefault(name, threading.Event())

    async def moved(self, to: str, *, reason: str = "", run: int | None = None) -> Event:
        """Waits for a move of that kind, or finds it among those that have been."""

        def fits(event: Event) -> bool:
            data = event.data
            same = event.kind == "server.moved" and data["to"] == to and reason in data["reason"]
            return same and run in (None, data["run"])

        for event in self.seen:
            if fits(event):
                return event
        with anyio.fail_after(PATIENCE_S):
            async for event in self._news:
                self.seen.append(event)
                if fits(event):
                    return event
        raise AssertionError("the bus was closed")

    def shown(self, wanted: WantedServer) -> ServerSnapshot:
        """The newest run of a key."""
        return next(shown for shown in self.pool.snapshot() if shown.key == wanted.key)

    def _locate(
        self, spec: ServerSpec, root: Path, places: Places, *, untrusted: Path | None, memory_mb: int
    ) -> Launch:
        self.located.append(root)
        self.limits_mb.append(memory_mb)
        gate = self.gates.get(root.name)
        if gate is not None:
            assert gate.wait(PATIENCE_S)
        return fake_launch(**self.scripts.get(root.name, {}))

    def _usage(self, server: LanguageServer) -> Usage:
        memory_mb = self.memory_mb.get(server.root.name)
        return server.usage() if memory_mb is None else Usage(memory_mb << 20)


@asynccontextmanager
async def pool_box(folder: Path, **policy: Any) -> AsyncGenerator[PoolBox]:
    """Runs a pool while the block is open; it sweeps only when it is told to."""
    bus = EventBus()
    bounds = PoolPolicy(**{"idle_check_s": 3600.0, "restart_delay_s": 0.01, **policy})
    with bus.subscribe() as news:
        box = PoolBox(folder, bounds, FakeClock(), bus, news)
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(PATIENCE_S):
                await tasks.start(box.pool.run)
            try:
                yield box
            finally:
                for gate in box.gates.values():
                    gate.set()
                tasks.cancel_scope.cancel()


async def hover(server: LanguageServer, column: int = 0) -> str | None:
    """One call that the server answers with the text of `code.py`. Equal columns asked at once are asked once."""
    with anyio.fail_after(PATIENCE_S):
        return await server.hover(server.root / "code.py", Position(0, column))


async def until_gone(pid: int) -> None:
    """Waits until no process has this pid."""
    with anyio.fail_after(PATIENCE_S):
        while Path(f"/proc/{pid}").exists():
            await anyio.sleep(0.005)
