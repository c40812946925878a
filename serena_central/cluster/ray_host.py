"""A project host as a Ray actor, and how it asks for its epoch."""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec
import ray
from ray.exceptions import GetTimeoutError, RayActorError

from serena_central.cluster.node_reports import doctor, records_below
from serena_central.cluster.ray_cluster import DIRECTORY, NAMESPACE, outcome_of
from serena_central.core.errors import HostFenced, HostUnavailable, SerenaCentralError
from serena_central.core.groups import only_cause
from serena_central.core.progress import Listener
from serena_central.editing.journal import Entry

if TYPE_CHECKING:
    from serena_central.cluster.project_host import ProjectHost

logger = logging.getLogger(__name__)

FENCE_S = 5.0
"""How long a host asks for its epoch; without an answer it does not write."""


@ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)
class HostActor:
    """A project host as an actor, one per root and epoch. It waits, with all code loaded, until it is given a root."""

    def __init__(self) -> None:
        # Late: a second of imports, which the directory is spared, that only names this class.
        from serena_central.cluster.project_host import hosting

        self._hosting = hosting
        self._root = ""
        self._epoch = 0
        self._host: ProjectHost | None = None
        self._ended = anyio.Event()

    async def start(self, root: str, epoch: int, home: str) -> bytes:
        """Returns once it answers. Its parts belong to a task of their own, which lasts as long as the actor."""
        self._root, self._epoch = root, epoch
        ready, failure = anyio.Event(), list[Exception]()

        async def hold() -> None:
            fence = EpochFence(self._root, self._epoch)
            try:
                async with self._hosting(root, epoch, Path(home), fence, self._failed) as self._host:
                    ready.set()
                    await self._ended.wait()
            except Exception as error:
                logger.exception("the host of %s ended", self._root)
                failure.append(error)
            finally:
                self._host = None
                ready.set()

        async def started() -> None:
            await ready.wait()
            if failure:
                cause = only_cause(failure[0])
                raise cause if isinstance(cause, SerenaCentralError) else HostUnavailable(self._root, str(cause))

        self._task = asyncio.get_running_loop().create_task(hold())  # Ray owns the loop, and no task group
        return await outcome_of(started())

    def _failed(self) -> None:
        """A part failed: a host that answers without one of its parts would answer wrongly."""
        logger.error("the host of %s failed and ends", self._root)
        os._exit(1)

    async def run(self, message: bytes) -> bytes:
        """The outcome, whose value is the reply."""
        return await outcome_of(self._run(message, _nobody))

    async def _run(self, message: bytes, report: Listener) -> bytes:
        if self._host is None:
            raise HostUnavailable(self._root, "its host is starting or ending")
        return await self._host.run(message, report)

    async def run_reporting(self, message: bytes) -> AsyncGenerator[bytes | tuple[str, float | None]]:
        """Progress, and the reply as the last."""
        send, receive = anyio.create_memory_object_stream[tuple[str, float | None]](100)
        outcome: list[bytes] = []

        def report(text: str, part: float | None) -> None:
            with suppress(anyio.WouldBlock):  # somebody reports more than anybody reads
                send.send_nowait((text, part))

        async def work() -> None:
            with send:
                outcome.append(await outcome_of(self._run(message, report)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            with receive:
                async for said in receive:
                    yield said
        yield outcome[0]

    async def ping(self) -> int:
        return self._epoch

    async def status(self) -> bytes | None:
        """The host's state; None where it is a spare."""
        return msgspec.msgpack.encode(self._host.state()) if self._host is not None else None

    async def records(self, home: str, session: str | None, count: int) -> bytes:
        """Of the logs of all hosts of a node, those that ended included."""
        return msgspec.msgpack.encode(await anyio.to_thread.run_sync(records_below, Path(home), session, count))

    async def checks(self) -> bytes:
        """What `serena-central doctor` prints here, as JSON."""
        return await doctor()

    async def end(self) -> None:
        """Ends it as a server ends: language servers and journal are closed."""
        self._ended.set()
        with anyio.move_on_after(10):
            await self._task


def _nobody(_text: str, _part: float | None) -> None:
    """Progress that nobody asked for."""


class EpochFence:
    """Lets a host write while its epoch is its root's newest."""

    def __init__(self, root: str, epoch: int) -> None:
        self._root = root
        self._epoch = epoch

    def check(self, _entry: Entry) -> None:
        """Raises HostFenced unless the epoch is still the newest."""
        root, epoch = self._root, self._epoch
        try:
            current = ray.get(ray.get_actor(DIRECTORY, namespace=NAMESPACE).epoch.remote(root), timeout=FENCE_S)
        except (RayActorError, GetTimeoutError, ValueError) as error:
            logger.warning("the epoch of %s can't be asked for: %s", root, error)
            raise HostFenced(root, epoch) from error
        if current != epoch:
            raise HostFenced(root, epoch, current)

    def rolled_back(self, _entry: Entry) -> None:
        """Nothing was reserved."""
