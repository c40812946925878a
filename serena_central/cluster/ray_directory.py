"""The directory as a Ray actor, and how it starts and ends hosts."""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import ray
from ray.exceptions import RayActorError, RayTaskError

from serena_central.cluster.directory import SILENT_S, Directory, Node, Placement
from serena_central.cluster.frames import HostAddress
from serena_central.cluster.outcome import failed_outcome, good_outcome, outcome_of, value_of
from serena_central.cluster.ray_cluster import NAMESPACE, resource_of
from serena_central.cluster.ray_host import HostActor
from serena_central.config.load import load_server_config
from serena_central.core.decoding import converted, from_msgpack
from serena_central.core.errors import HostUnavailable, NodeNameTaken
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.core.tracing import new_call_id
from serena_central.store.store import Store

HOST_PREFIX = "host-"

SPARES = 2
"""Of each node. One takes longer to start than a lost host to be replaced: the next loss would wait for it."""

ADDRESS_S = 5.0
"""How long a host of the directory before may take to say where it takes runs."""


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)
class DirectoryActor:
    """The directory as an actor. Ray starts it again where it died; what it must know is in the store: `database_url`,
    else the one of `home`."""

    def __init__(self, home: str) -> None:
        url = load_server_config({}).value.database_url
        store = Store(Places(Path(home)).database, EventBus(), url=url)
        self._hosts = _RayHosts()
        self._directory = Directory(self._hosts, store, settling_s=SILENT_S)

    async def announce(self, node: bytes) -> bytes:
        try:
            return good_outcome(self._directory.announce(from_msgpack(node, Node)))
        except NodeNameTaken as error:
            return failed_outcome(error)

    async def leave(self, name: str, run: str) -> None:
        self._directory.leave(name, run)

    async def roots(self) -> list[str]:
        return await self._directory.roots()

    async def place(self, root: str, lost_epoch: int, unreachable: str) -> bytes:
        """The placement and the host's address; None where the host does not answer."""
        return await outcome_of(self._placed(root, lost_epoch, unreachable))

    async def _placed(self, root: str, lost_epoch: int, unreachable: str) -> tuple[Placement, HostAddress | None]:
        placement = await self._directory.place(root, lost_epoch, unreachable)
        return placement, await self._hosts.address(placement.host)

    async def move(self, root: str, node: str | None) -> bytes:
        return await outcome_of(self._directory.move(root, node))

    async def drain(self, name: str, draining: bool) -> bytes:
        return await outcome_of(self._directory.drain(name, draining=draining))

    async def begin_edit(self, placement: bytes, edit: str, entry: bytes) -> bytes:
        return await outcome_of(self._directory.begin_edit(from_msgpack(placement, Placement), edit, entry))

    async def holds(self, placement: bytes) -> bool:
        return await self._directory.holds(from_msgpack(placement, Placement))

    async def end_edit(self, edit: str) -> None:
        await self._directory.end_edit(edit)

    async def status(self) -> dict[str, Any]:
        return await self._directory.status()


class _Spare:
    """A host without a root. Its first answer says that it has loaded its code, and opens the way to it, for which Ray
    takes up to half a second: where a host was lost, nobody is to wait for either."""

    def __init__(self, node: str) -> None:
        self.name = f"{HOST_PREFIX}{new_call_id()}"
        options = {"name": self.name, "namespace": NAMESPACE, "lifetime": "detached"}
        self.actor = HostActor.options(**options, resources={resource_of(node): 0.0001}).remote()
        self._first_answer = self.actor.ping.remote().future()

    @property
    def ready(self) -> bool:
        """Whether it has answered."""
        return self._first_answer.done() and self._first_answer.exception() is None


class _RayHosts:
    """Starts and ends hosts for the directory. Each node has spare ones, which have loaded their code and have no root:
    a lost host is replaced without a second of imports."""

    def __init__(self) -> None:
        self._spares: dict[str, list[_Spare]] = {}
        """Node → its spare hosts, the oldest first."""
        self._addresses: dict[str, HostAddress] = {}
        """Host → where it takes runs."""
        self._earlier = {name for name in ray.util.list_named_actors() if name.startswith(HOST_PREFIX)}

    def prepare(self, node: str) -> None:
        self._spares[node] = [_Spare(node) for _ in range(SPARES)]

    async def answers(self, host: str) -> bool:
        actor = self._alive(host)
        if actor is not None:
            with suppress(RayActorError, RayTaskError):
                await actor.ping.remote()
                return True
        return False

    def agent(self, node: str) -> str | None:
        """Its oldest spare host that is ready, else the oldest."""
        spares = self._ordered(node)
        return spares[0].name if spares else None

    async def is_alive(self, node: str) -> bool:
        spares = self._ordered(node)
        if not spares:
            return False
        with suppress(RayActorError):
            await spares[0].actor.ping.remote()
            return True
        return False

    def new(self, node: str) -> str:
        living = [spare for spare in self._ordered(node) if self._alive(spare.name) is not None]
        first, *self._spares[node] = living or [_Spare(node)]
        return first.name

    def _ordered(self, node: str) -> list[_Spare]:
        return sorted(self._spares.get(node, []), key=lambda spare: not spare.ready)

    def _refill(self, node: str) -> None:
        spares = self._spares.setdefault(node, [])
        spares += [_Spare(node) for _ in range(SPARES - len(spares))]

    async def start(self, placement: Placement, home: str, begun: list[bytes]) -> None:
        try:
            await self._start(placement, home, begun)
        finally:
            self._refill(placement.node)  # not before: to load its code it would take the CPU from the one that starts

    async def _start(self, placement: Placement, home: str, begun: list[bytes]) -> None:
        actor = self._alive(placement.host)
        if actor is None:
            raise HostUnavailable(placement.root, "its host ended before it started")
        try:
            started = value_of(await actor.start.remote(msgspec.msgpack.encode(placement), home, begun))
            self._addresses[placement.host] = converted(started, HostAddress)
        except (RayActorError, RayTaskError) as error:
            raise HostUnavailable(placement.root, f"its host ended while it started: {error}") from error
        except BaseException:
            ray.kill(actor)
            raise

    async def address(self, host: str) -> HostAddress | None:
        """Where a host takes runs, also one that the directory before has started; None where it does not answer."""
        known = self._addresses.get(host)
        actor = self._alive(host) if known is None else None
        if actor is None:
            return known
        with anyio.move_on_after(ADDRESS_S), suppress(RayActorError, RayTaskError):
            said = await actor.address.remote()
            if said is not None:
                return self._addresses.setdefault(host, from_msgpack(said, HostAddress))
        return None

    def _alive(self, name: str) -> Any:
        with suppress(ValueError):
            return ray.get_actor(name, namespace=NAMESPACE)
        return None

    async def stop(self, host: str, *, lost: bool) -> None:
        self._addresses.pop(host, None)
        actor = self._alive(host)
        if actor is None:
            return
        if not lost:
            with anyio.move_on_after(2.0), suppress(RayActorError, RayTaskError):
                await actor.end.remote()
        ray.kill(actor)

    def end_others(self, placed: set[str]) -> None:
        """Spares of the directory before, too."""
        for name in self._earlier - placed:
            actor = self._alive(name)
            if actor is not None:
                ray.kill(actor)
