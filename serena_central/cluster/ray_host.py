"""A project host as a Ray actor, and how it asks whether it may write."""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import HostAddress
from serena_central.cluster.node_reports import doctor, records_below
from serena_central.cluster.outcome import outcome_of, value_of
from serena_central.cluster.ray_cluster import DIRECTORY, NAMESPACE
from serena_central.cluster.ray_processes import HOST_PORTS
from serena_central.cluster.run_listener import listening, ports_of_hosts
from serena_central.core.decoding import from_msgpack
from serena_central.core.errors import HostFenced, HostUnavailable, SerenaCentralError
from serena_central.core.groups import only_cause
from serena_central.editing.journal import Entry

if TYPE_CHECKING:
    from serena_central.cluster.project_host import ProjectHost

logger = logging.getLogger(__name__)

FENCE_S = 5.0
"""How long a host asks whether it may write; without an answer it does not."""

_UNANSWERED = (RayActorError, RayTaskError, GetTimeoutError, ValueError)


@ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)
class HostActor:
    """A project host as an actor, one per root and epoch. It waits, with all code loaded, until it is given a root."""

    def __init__(self) -> None:
        # Late: a second of imports, which the directory is spared, that only names this class.
        from serena_central.cluster.project_host import hosting

        self._hosting = hosting
        self._placement = Placement(root="", epoch=0, node="", host="")
        self._host: ProjectHost | None = None
        self._ended = anyio.Event()
        self._address: HostAddress | None = None

    async def start(self, placement: bytes, home: str, begun: list[bytes]) -> bytes:
        """The address where it takes runs, once it does. Its parts belong to a task of their own, which lasts as long
        as the actor. `begun`: edits (entries of journals) of hosts before it, which it brings to an end first."""
        placed = self._placement = from_msgpack(placement, Placement)
        inherited = [from_msgpack(entry, Entry) for entry in begun]
        ready, failure = anyio.Event(), list[Exception]()

        async def hold() -> None:
            try:
                hosting = self._hosting(placed, Path(home), EpochFence(placed), inherited, self._failed)
                own, ports = ray.util.get_node_ip_address(), ports_of_hosts(HOST_PORTS)
                async with hosting as self._host, listening(self._host.run, own, ports) as self._address:
                    ready.set()
                    await self._ended.wait()
            except Exception as error:
                logger.exception("the host of %s ended", placed.root)
                failure.append(error)
            finally:
                self._host = self._address = None
                ready.set()

        async def started() -> HostAddress | None:
            await ready.wait()
            if failure:
                cause = only_cause(failure[0])
                raise cause if isinstance(cause, SerenaCentralError) else HostUnavailable(placed.root, str(cause))
            return self._address

        self._task = asyncio.get_running_loop().create_task(hold())  # Ray owns the loop, and no task group
        return await outcome_of(started())

    def _failed(self) -> None:
        """A part failed: a host that answers without one of its parts would answer wrongly."""
        logger.error("the host of %s failed and ends", self._placement.root)
        os._exit(1)

    async def ping(self) -> None:
        """Answers: it has loaded its code, and its event loop runs."""

    async def address(self) -> bytes | None:
        """Where it takes runs; None where it has no root yet, or not any more."""
        return msgspec.msgpack.encode(self._address) if self._address is not None else None

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


class EpochFence:
    """Lets a host write while it is the one that holds its root, and notes what it begins. Blocks; see `Fence`."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._encoded = msgspec.msgpack.encode(placement)
        self._directory: Any = None

    def check(self, entry: Entry) -> None:
        """Raises HostFenced unless the host still holds its root, which the store knows."""
        begun = msgspec.msgpack.encode(msgspec.structs.replace(entry, record=b""))  # only to end it
        try:
            outcome = self._asked(lambda directory: directory.begin_edit.remote(self._encoded, entry.id, begun))
        except _UNANSWERED as error:
            logger.warning("whether %s may be written can't be asked: %s", self._placement.root, error)
            raise HostFenced(self._placement.root, self._placement.epoch) from error
        value_of(outcome)

    def still_holds(self, _entry: Entry) -> bool:
        try:
            return self._asked(lambda directory: directory.holds.remote(self._encoded))
        except _UNANSWERED:
            return False

    def ended(self, entry: Entry, *, applied: bool | None) -> None:
        """Nobody waits for it."""
        with suppress(*_UNANSWERED):
            self._found().end_edit.remote(entry.id)

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        return ray.get(ask(self._found()), timeout=FENCE_S)

    def _found(self) -> Any:
        if self._directory is None:
            self._directory = ray.get_actor(DIRECTORY, namespace=NAMESPACE)
        return self._directory
