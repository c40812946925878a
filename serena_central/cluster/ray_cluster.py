"""Ray beneath a cluster: the connection to it, and the way to the directory.

Ray places processes and supervises them, and tells where a host takes its runs (`host_wire`). `directory` and
`project_host` know what is to be done; `ray_directory` and `ray_host` make actors of them. Nobody else imports Ray. Its
token is required (RAY_AUTH_MODE=token): whoever can call an actor can run code. What runs tools is not imported here:
commands that ask for the cluster's state are to start quickly.
"""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import os
import socket
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import ray
from ray.exceptions import RayActorError, RayTaskError

from serena_central.cluster.bound_sockets import called_bound
from serena_central.cluster.directory import Node, Placement
from serena_central.cluster.frames import HostAddress
from serena_central.cluster.outcome import value_of
from serena_central.cluster.ray_loopback import keep_loopback
from serena_central.core.decoding import converted
from serena_central.core.errors import ClusterError, ConfigError, DirectoryUnavailable

NAMESPACE = "serena-central"

DIRECTORY = "directory"

REACHED_S = 5.0
"""How long the head may take to accept a connection."""

ASKED_S = 10.0
"""A call that Ray has lost is never answered. The directory answers from memory; to place a root takes longer where a
host is to be started, and may be asked for again meanwhile."""

MOVED_S = 90.0
"""The new host is started meanwhile, for which the directory takes START_S at most."""

DRAINED_S = 600.0
"""It moves one host after the other."""

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_timeout_ms_task_wait_for_death_info": "100",
    "RAY_core_worker_internal_heartbeat_ms": "250",
}
"""Ray's, of all processes that call actors. A call of one that can't be reached fails at once: Ray would wait a second
for the reason, and look only every second whether it is over."""


def check_environment() -> None:
    """Raises ConfigError unless Ray authenticates by token: the environment must say so before Ray starts."""
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise ConfigError(
            "RAY_AUTH_MODE", "must be `token`: without it whoever reaches a port of Ray can run code here"
        )
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    token = os.environ.get("RAY_AUTH_TOKEN") or (Path(named).read_text(encoding="ascii").strip() if named else "")
    if not named and not token and (default := Path.home() / ".ray" / "auth_token").exists():
        token = default.read_text(encoding="ascii").strip()
    if len(token) < 32:
        raise ConfigError("RAY_AUTH_TOKEN", "must be a secret of 32 characters or more, the same on all machines")


def connect(address: str, folder: str | None = None, bound: str | None = None) -> None:
    """Joins the cluster as a client of it, through Ray's processes that were started in `folder`; None: through any
    of this machine. `bound`: the address that its sockets are bound to (`bound_sockets`); None: what Ray takes. Blocks
    for up to some seconds.

    Raises:
        ConfigError: the environment does not require the token.
        ClusterError: no cluster answers there.
    """
    check_environment()
    _check_reachable(address)
    os.environ.update(SETTINGS)
    keep_loopback()
    init = partial(ray.init, address, namespace=NAMESPACE, log_to_driver=False, logging_level="error", _temp_dir=folder)
    try:
        init() if bound is None else called_bound(bound, init)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(f"No Ray cluster answers at {address}: {error}") from error


def _check_reachable(address: str) -> None:
    """Ray itself tries for ever where nobody listens.

    Raises:
        ClusterError
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHED_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"No Ray cluster answers at {address}: {error}") from error


def disconnect() -> None:
    ray.shutdown()


def resource_of(node: str) -> str:
    """The resource by which Ray knows a node of ours: several may share a machine."""
    return f"serena-node:{node}"


# --- clients -------------------------------------------------------------------------------------------------------


class DirectoryClient:
    """Asks the directory."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def made(cls, home: Path, node: str) -> "DirectoryClient":
        """Starts the directory on the node of the cluster's head, whose home that is, if there is none yet."""
        from serena_central.cluster.ray_directory import DirectoryActor  # late: it needs this module

        actor = DirectoryActor.options(
            name=DIRECTORY,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            resources={resource_of(node): 0.0001},
        ).remote(str(home))
        return cls(actor)

    @classmethod
    def found(cls) -> "DirectoryClient":
        """The directory of the cluster that this process belongs to.

        Raises:
            ClusterError: the cluster has none.
        """
        try:
            return cls(ray.get_actor(DIRECTORY, namespace=NAMESPACE))
        except ValueError as error:
            raise ClusterError(
                "This Ray cluster has no node of serena-central. Start one with `serena-central node`."
            ) from error

    async def announce(self, node: Node) -> bool:
        """As `Directory.announce`."""
        return value_of(await self._asked(self._actor.announce.remote(msgspec.msgpack.encode(node))))

    async def leave(self, name: str, run: str) -> None:
        await self._asked(self._actor.leave.remote(name, run))

    async def roots(self) -> list[str]:
        return await self._asked(self._actor.roots.remote())

    async def place(
        self, root: str, lost_epoch: int = 0, unreachable: str = ""
    ) -> tuple[Placement, HostAddress | None]:
        """The host of a root, and where it takes runs; None where it does not answer. `lost_epoch`, `unreachable`: see
        `Directory.place`."""
        placed = value_of(await self._asked(self._actor.place.remote(root, lost_epoch, unreachable)))
        return converted(placed, tuple[Placement, HostAddress | None])

    async def move(self, root: str, node: str | None) -> Placement:
        return converted(value_of(await self._asked(self._actor.move.remote(root, node), MOVED_S)), Placement)

    async def drain(self, name: str, *, draining: bool) -> dict[str, str]:
        return value_of(await self._asked(self._actor.drain.remote(name, draining), DRAINED_S))

    async def status(self) -> dict[str, Any]:
        return await self._asked(self._actor.status.remote())

    async def _asked(self, reference: Any, within_s: float = ASKED_S) -> Any:
        try:
            with anyio.fail_after(within_s):
                return await reference
        except (RayActorError, RayTaskError) as error:
            raise DirectoryUnavailable(str(error).partition("\n")[0].rstrip(". ")) from error
        except TimeoutError as error:
            raise DirectoryUnavailable(f"it has not answered within {within_s:g} s") from error
