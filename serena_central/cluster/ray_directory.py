"""The directory as a Ray actor, and how it starts and ends hosts."""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import ray
from ray.exceptions import RayActorError, RayTaskError

from serena_central.cluster.directory import Directory, Node, Placement
from serena_central.cluster.ray_cluster import NAMESPACE, outcome_of, resource_of, value_of
from serena_central.cluster.ray_host import HostActor
from serena_central.core.decoding import from_msgpack
from serena_central.core.errors import HostUnavailable
from serena_central.core.tracing import new_call_id

ALIVE_S = 1.5
"""How long a node has to show that it lives, when a host on it was lost."""

HOST_PREFIX = "host-"


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)
class DirectoryActor:
    """The directory as an actor. Ray starts it again where it died; what it must know is in its file."""

    def __init__(self, file: str) -> None:
        self._directory = Directory(_RayHosts(), Path(file))
        _end_others({placed["host"] for placed in self._directory.status()["placements"]})

    async def announce(self, node: bytes) -> None:
        self._directory.announce(from_msgpack(node, Node))

    async def leave(self, name: str) -> None:
        self._directory.leave(name)

    async def roots(self) -> list[str]:
        return self._directory.roots()

    async def place(self, root: str, lost_epoch: int) -> bytes:
        return await outcome_of(self._directory.place(root, lost_epoch))

    async def move(self, root: str, node: str | None) -> bytes:
        return await outcome_of(self._directory.move(root, node))

    async def drain(self, name: str, draining: bool) -> bytes:
        return await outcome_of(self._directory.drain(name, draining=draining))

    async def epoch(self, root: str) -> int:
        return self._directory.epoch(root)

    async def status(self) -> dict[str, Any]:
        return self._directory.status()


class _RayHosts:
    """Starts and ends hosts for the directory. Each node has a spare one, which has loaded its code and has no root:
    a lost host is replaced without a second of imports."""

    def __init__(self) -> None:
        self._spares: dict[str, str] = {}

    def prepare(self, node: str) -> None:
        self._spares[node] = self._created(node)

    def agent(self, node: str) -> str | None:
        """Its spare host."""
        return self._spares.get(node)

    async def is_alive(self, node: str) -> bool:
        """By its spare host."""
        name = self._spares.get(node)
        actor = self._alive(name) if name is not None else None
        if actor is None:
            return False
        with anyio.move_on_after(ALIVE_S), suppress(RayActorError):
            await actor.ping.remote()
            return True
        return False

    async def start(self, root: str, epoch: int, node: str, home: str) -> str:
        name = self._spares.pop(node, None)
        actor = self._alive(name) if name is not None else None
        if name is None or actor is None:
            name = self._created(node)
            actor = ray.get_actor(name, namespace=NAMESPACE)
        self.prepare(node)
        try:
            value_of(await actor.start.remote(root, epoch, home))
        except (RayActorError, RayTaskError) as error:
            raise HostUnavailable(root, f"its host ended while it started: {error}") from error
        except BaseException:
            ray.kill(actor)
            raise
        return name

    def _created(self, node: str) -> str:
        name = f"{HOST_PREFIX}{new_call_id()}"
        options = {"name": name, "namespace": NAMESPACE, "lifetime": "detached"}
        HostActor.options(**options, resources={resource_of(node): 0.0001}).remote()
        return name

    def _alive(self, name: str) -> Any:
        with suppress(ValueError):
            return ray.get_actor(name, namespace=NAMESPACE)
        return None

    async def stop(self, placement: Placement) -> None:
        try:
            actor = ray.get_actor(placement.host, namespace=NAMESPACE)
        except ValueError:
            return
        with anyio.move_on_after(2.0):
            with suppress(RayActorError, RayTaskError):
                await actor.end.remote()
        ray.kill(actor)


def _end_others(placed: set[str]) -> None:
    """Ends the hosts of which a directory that was lost had not yet written where they are, and its spares."""
    for name in ray.util.list_named_actors():
        if name.startswith(HOST_PREFIX) and name not in placed:
            with suppress(ValueError):
                ray.kill(ray.get_actor(name, namespace=NAMESPACE))
