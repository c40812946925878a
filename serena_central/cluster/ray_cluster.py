"""Ray beneath a cluster: the only module that imports it. Actors for the directory and the hosts, and the way to them.

Ray places processes, supervises them and carries the messages; what they mean is known to `directory` and
`project_host`. Ray's token is required (RAY_AUTH_MODE=token): whoever can call an actor can run code.
"""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayActorError, RayTaskError

from serena_central.cluster.directory import Directory, Node, Placement
from serena_central.cluster.messages import ErrorData, error_data, error_of
from serena_central.cluster.project_host import ProjectHost, hosting
from serena_central.core.errors import ClusterError, ConfigError, HostFenced, HostUnavailable, SerenaCentralError
from serena_central.core.groups import only_cause
from serena_central.core.progress import Listener
from serena_central.core.tracing import new_call_id

logger = logging.getLogger(__name__)

NAMESPACE = "serena-central"

DIRECTORY = "directory"

FENCE_S = 5.0
"""How long a host asks for its epoch; without an answer it does not write."""

ALIVE_S = 1.5
"""How long a node has to show that it lives, when a host on it was lost."""

PING_AFTER_S = 2.0
"""A host that left a call unanswered for so long is asked whether it lives …"""

PING_S = 5.0
"""… and has this long to answer: a machine may be busy, and a host that ended is known by its connection at once."""


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


def connect(address: str) -> None:
    """Joins the cluster as a client of it. Blocks for up to some seconds.

    Raises:
        ConfigError: the environment does not require the token.
        ClusterError: no cluster answers there.
    """
    check_environment()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(f"No Ray cluster answers at {address}: {error}") from error


def disconnect() -> None:
    ray.shutdown()


# --- actors --------------------------------------------------------------------------------------------------------


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)
class DirectoryActor:
    """The directory as an actor. Ray starts it again where it died; what it must know is in its file."""

    def __init__(self, file: str) -> None:
        self._directory = Directory(_RayHosts(), Path(file))

    async def announce(self, node: bytes) -> None:
        self._directory.announce(msgspec.msgpack.decode(node, type=Node))

    async def leave(self, name: str) -> None:
        self._directory.leave(name)

    async def roots(self) -> list[str]:
        return self._directory.roots()

    async def place(self, root: str, lost_epoch: int) -> bytes:
        return await _outcome(self._directory.place(root, lost_epoch))

    async def move(self, root: str, node: str | None) -> bytes:
        return await _outcome(self._directory.move(root, node))

    async def drain(self, name: str, draining: bool) -> dict[str, str]:
        return await self._directory.drain(name, draining=draining)

    async def epoch(self, root: str) -> int:
        return self._directory.epoch(root)

    async def status(self) -> dict[str, Any]:
        return self._directory.status()


@ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)
class HostActor:
    """A project host as an actor, one per root and epoch. It waits, with all code loaded, until it is given a root."""

    def __init__(self) -> None:
        self._root = ""
        self._epoch = 0
        self._host: ProjectHost | None = None
        self._ended = anyio.Event()

    async def start(self, root: str, epoch: int, home: str) -> bytes:
        """Returns once it answers. Its parts belong to a task of their own, which lasts as long as the actor."""
        self._root, self._epoch = root, epoch
        ready, failure = anyio.Event(), list[Exception]()

        async def hold() -> None:
            fence = partial(check_fence, self._root, self._epoch)
            try:
                async with hosting(root, epoch, Path(home), fence, self._failed) as self._host:
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
        return await _outcome(started())

    def _failed(self) -> None:
        """A part failed: a host that answers without one of its parts would answer wrongly."""
        logger.error("the host of %s failed and ends", self._root)
        os._exit(1)

    async def run(self, message: bytes) -> bytes:
        """The outcome, whose value is the reply."""
        return await _outcome(self._run(message, _nobody))

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
                outcome.append(await _outcome(self._run(message, report)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            with receive:
                async for said in receive:
                    yield said
        yield outcome[0]

    async def ping(self) -> int:
        return self._epoch

    async def status(self) -> dict[str, Any] | None:
        return self._host.status() if self._host is not None else None

    async def end(self) -> None:
        """Ends it as a server ends: language servers and journal are closed."""
        self._ended.set()
        with anyio.move_on_after(10):
            await self._task


def _nobody(_text: str, _part: float | None) -> None:
    """Progress that nobody asked for."""


class _RayHosts:
    """Starts and ends hosts for the directory. Each node has a spare one, which has loaded its code and has no root:
    a lost host is replaced without a second of imports."""

    def __init__(self) -> None:
        self._spares: dict[str, str] = {}

    def prepare(self, node: str) -> None:
        self._spares[node] = self._created(node)

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
            _value_of(await actor.start.remote(root, epoch, home))
        except (RayActorError, RayTaskError) as error:
            raise HostUnavailable(root, f"its host ended while it started: {error}") from error
        except BaseException:
            ray.kill(actor)
            raise
        return name

    def _created(self, node: str) -> str:
        name = f"host-{new_call_id()}"
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


def resource_of(node: str) -> str:
    """The resource by which Ray knows a node of ours: several may share a machine."""
    return f"serena-node:{node}"


def check_fence(root: str, epoch: int) -> None:
    """Raises HostFenced unless the epoch is still the root's newest. Blocks: for worker threads."""
    try:
        current = ray.get(ray.get_actor(DIRECTORY, namespace=NAMESPACE).epoch.remote(root), timeout=FENCE_S)
    except (RayActorError, GetTimeoutError, ValueError) as error:
        logger.warning("the epoch of %s can't be asked for: %s", root, error)
        raise HostFenced(root, epoch) from error
    if current != epoch:
        raise HostFenced(root, epoch, current)


class _Outcome(msgspec.Struct, omit_defaults=True):
    """What a method of an actor came to. Errors travel as data: pickle can't make them again."""

    value: Any = None
    error: ErrorData | None = None


async def _outcome(work: Awaitable[Any]) -> bytes:
    try:
        return msgspec.msgpack.encode(_Outcome(await work))
    except SerenaCentralError as error:
        return msgspec.msgpack.encode(_Outcome(error=error_data(error)))


def _value_of(outcome: bytes) -> Any:
    """
    Raises:
        SerenaCentralError: what the method has raised.
    """
    said = msgspec.msgpack.decode(outcome, type=_Outcome)
    if said.error is not None:
        raise error_of(said.error)
    return said.value


# --- clients -------------------------------------------------------------------------------------------------------


class DirectoryClient:
    """Asks the directory."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def made(cls, file: Path, node: str) -> "DirectoryClient":
        """Starts the directory on the node of the cluster's head, if there is none yet."""
        actor = DirectoryActor.options(
            name=DIRECTORY,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            resources={resource_of(node): 0.0001},
        ).remote(str(file))
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
        return msgspec.convert(_value_of(await self._asked(self._actor.place.remote(root, lost_epoch))), Placement)

    async def move(self, root: str, node: str | None) -> Placement:
        return msgspec.convert(_value_of(await self._asked(self._actor.move.remote(root, node))), Placement)

    async def drain(self, name: str, *, draining: bool) -> dict[str, str]:
        return _value_of(await self._asked(self._actor.drain.remote(name, draining)))

    async def status(self) -> dict[str, Any]:
        return await self._asked(self._actor.status.remote())

    async def _asked(self, reference: Any) -> Any:
        try:
            return await reference
        except (RayActorError, RayTaskError) as error:
            raise ClusterError(f"The cluster's directory is not available now: {error}") from error


class HostGone(Exception):
    """The host of a placement does not answer any more."""


class HostWire:
    """The way to the host of one placement."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._actor: Any = None

    async def send(self, message: bytes, on_progress: Listener | None) -> bytes:
        """The reply to a run.

        Raises:
            HostGone: the host ended, or hangs.
        """
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self.placement.host, namespace=NAMESPACE)
            reference = (
                self._actor.run.remote(message) if on_progress is None else self._actor.run_reporting.remote(message)
            )
        except (ValueError, RayActorError) as error:
            raise HostGone(str(error)) from error
        reply: list[bytes] = []
        gone: list[Exception] = []
        try:
            async with anyio.create_task_group() as tasks:

                async def answer() -> None:
                    try:
                        reply.append(await (reference if on_progress is None else _last(reference, on_progress)))
                    except (ActorDiedError, ActorUnavailableError, RayActorError) as error:
                        gone.append(error)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(answer)
                gone += await self._until_silent()
                tasks.cancel_scope.cancel()
        except BaseException:
            ray.cancel(reference)
            raise
        if reply:
            return _value_of(reply[0])
        raise HostGone(str(gone[0]) if gone else "it does not answer")

    async def _until_silent(self) -> list[Exception]:
        """Returns when the host does not answer a ping."""
        while True:
            await anyio.sleep(PING_AFTER_S)
            try:
                with anyio.fail_after(PING_S):
                    await self._actor.ping.remote()
            except (TimeoutError, RayActorError) as error:
                return [error]

    async def status(self) -> dict[str, Any] | None:
        """What the host says of itself; None if it does not answer."""
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self.placement.host, namespace=NAMESPACE)
            with anyio.fail_after(PING_S):
                return await self._actor.status.remote()
        except (ValueError, TimeoutError, RayActorError, RayTaskError):
            return None


async def _last(generator: Any, on_progress: Callable[[str, float | None], None]) -> bytes:
    async for reference in generator:
        said = await reference
        if isinstance(said, bytes):
            return said
        on_progress(*said)
    raise ClusterError("The project host sent no reply.")
