"""Ray beneath a cluster: the connection to it, and the ways to the directory and the hosts.

Ray places processes, supervises them and carries the messages; what they mean is known to `directory` and
`project_host`, which `ray_directory` and `ray_host` make actors of. Nobody else imports Ray. Its token is required
(RAY_AUTH_MODE=token): whoever can call an actor can run code. What runs tools is not imported here: commands that ask
for the cluster's state are to start quickly.
"""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import ray
from ray.exceptions import RayActorError, RayTaskError

from serena_central.cluster.directory import Node, Placement
from serena_central.cluster.error_data import ErrorData, error_data, error_of
from serena_central.cluster.ray_loopback import keep_loopback
from serena_central.core.decoding import converted, from_msgpack
from serena_central.core.errors import (
    ClusterError,
    ConfigError,
    DirectoryUnavailable,
    HostUnavailable,
    SerenaCentralError,
)
from serena_central.core.progress import Listener
from serena_central.web.cluster_view import HostState

NAMESPACE = "serena-central"

DIRECTORY = "directory"

ASKED_S = 10.0
"""A call that Ray has lost is never answered. The directory answers from memory; to place a root takes longer where a
host is to be started, and may be asked for again meanwhile."""

MOVED_S = 90.0
"""The new host is started meanwhile, for which the directory takes START_S at most."""

DRAINED_S = 600.0
"""It moves one host after the other."""

PING_AFTER_S = 1.0
"""A host that left a call unanswered for so long is asked whether it lives …"""

PING_S = 5.0
"""… and has this long to answer: a machine may be busy, and a host that ended is known by its connection at once."""


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


def connect(address: str, folder: str | None = None) -> None:
    """Joins the cluster as a client of it, through Ray's processes that were started in `folder`; None: through any
    of this machine. Blocks for up to some seconds.

    Raises:
        ConfigError: the environment does not require the token.
        ClusterError: no cluster answers there.
    """
    check_environment()
    os.environ.update(SETTINGS)
    keep_loopback()
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error", _temp_dir=folder)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(f"No Ray cluster answers at {address}: {error}") from error


def disconnect() -> None:
    ray.shutdown()


def resource_of(node: str) -> str:
    """The resource by which Ray knows a node of ours: several may share a machine."""
    return f"serena-node:{node}"


class Outcome(msgspec.Struct, omit_defaults=True):
    """What a method of an actor came to. Errors travel as data: pickle can't make them again."""

    value: Any = None
    error: ErrorData | None = None


async def outcome_of(work: Awaitable[Any]) -> bytes:
    try:
        return msgspec.msgpack.encode(Outcome(await work))
    except SerenaCentralError as error:
        return msgspec.msgpack.encode(Outcome(error=error_data(error)))


def value_of(outcome: bytes) -> Any:
    """
    Raises:
        SerenaCentralError: what the method has raised.
    """
    said = from_msgpack(outcome, Outcome)
    if said.error is not None:
        raise error_of(said.error)
    return said.value


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
        """
        Raises:
            ClusterError: the cluster has none.
        """
        try:
            return cls(ray.get_actor(DIRECTORY, namespace=NAMESPACE))
        except ValueError as error:
            raise ClusterError(
                "This Ray cluster has no node of serena-central. Start one with `serena-central node`."
            ) from error

    async def announce(self, node: Node) -> None:
        await self._asked(self._actor.announce.remote(msgspec.msgpack.encode(node)))

    async def leave(self, name: str) -> None:
        await self._asked(self._actor.leave.remote(name))

    async def roots(self) -> list[str]:
        return await self._asked(self._actor.roots.remote())

    async def place(self, root: str, lost_epoch: int = 0) -> Placement:
        return converted(value_of(await self._asked(self._actor.place.remote(root, lost_epoch))), Placement)

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


class HostGone(Exception):
    """The host of a placement does not answer any more. `begun`: it may have begun what it was
    sent."""

    def __init__(self, why: str, *, begun: bool = True) -> None:
        super().__init__(why)
        self.begun = begun


class HostWire:
    """The way to the host of one placement."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._actor: Any = None

    async def send(self, call: str, message: bytes, on_progress: Listener | None) -> bytes:
        """The reply to a run.

        Raises:
            HostGone: the host ended, or hangs.
        """
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self.placement.host, namespace=NAMESPACE)
            reference = self._actor.run.remote(message, call)
        except (ValueError, RayActorError) as error:
            raise HostGone(str(error), begun=False) from error
        reply: list[bytes] = []
        gone: list[Exception] = []
        try:
            async with anyio.create_task_group() as tasks:

                async def answer() -> None:
                    try:
                        reply.append(await reference)
                    except RayActorError as error:
                        gone.append(error)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(answer)
                gone += await self._until_silent(call, on_progress)
                tasks.cancel_scope.cancel()
        except BaseException:
            ray.cancel(reference)
            raise
        if reply:
            try:
                return value_of(reply[0])
            except HostUnavailable as error:  # it has no root yet, or not any more
                raise HostGone(str(error), begun=False) from error
        raise HostGone(str(gone[0]) if gone else "it does not answer")

    async def _until_silent(self, call: str, on_progress: Listener | None) -> list[Exception]:
        """Returns when the host does not answer a ping. Progress comes with the answers: calls that take less than a
        second report none, and cost one message."""
        while True:
            await anyio.sleep(PING_AFTER_S)
            try:
                with anyio.fail_after(PING_S):
                    news = await self._actor.ping.remote(call)
            except (TimeoutError, RayActorError) as error:
                return [error]
            if on_progress is not None:
                for text, part in news:
                    on_progress(text, part)

    async def status(self) -> HostState | None:
        """What the host says of itself; None if it does not answer."""
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self.placement.host, namespace=NAMESPACE)
            with anyio.fail_after(PING_S):
                said = await self._actor.status.remote()
            return None if said is None else from_msgpack(said, HostState)
        except (ValueError, TimeoutError, RayActorError, RayTaskError):
            return None
