"""Ray's own processes on a machine, below a supervisor, as part of one that Ray connects through.

Each node and each server has processes of its own, in a folder of its own: several share a machine, and one that is
lost takes nobody's connection with it. What they are for, `ray_cluster` and `node` know.
"""

import json
import logging
import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.cluster import ray_cluster
from serena_central.cluster.bound_sockets import binds_alone, command_bound
from serena_central.core.errors import ClusterError
from serena_central.core.groups import reported_failure
from serena_central.processes.child import ChildProcess, supervised
from serena_central.processes.ladder import Ladder
from serena_central.processes.output import Tail, drain
from serena_central.processes.scratch import borrowed

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
"""The one address that Ray itself binds all of its sockets to; with any other it listens on all interfaces."""

START_S = 300.0
"""How long Ray may take to start, all attempts together …"""

ATTEMPTS = 3
"""… since it gives up by itself where its first processes take more than 30 s, on a machine that does much else."""

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Ray's own memory for large objects: messages are small, and go another way."""

ENDING = Ladder(0.0, 8.0)
"""Ray ends its own processes, and the hosts among them."""

_STARTED = b"Ray runtime started"

_GAVE_UP = "timed out during startup"

_SINGLE_PORTS = (
    "node-manager-port",
    "object-manager-port",
    "runtime-env-agent-port",
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "metrics-export-port",
)

LEAST_PORTS = len(_SINGLE_PORTS) + 20
"""Each project host needs two, one that Ray gives it and one for runs; its spares and every program that asks the
cluster need one of the former."""

HOST_PORTS = "SERENA_CENTRAL_HOST_PORTS"
"""The environment variable by which hosts get to know the ports for runs, `FIRST-LAST`; Ray's processes inherit it."""


@dataclass(frozen=True)
class RayNode:
    """What Ray's processes are started with. `head_port`: they begin a cluster there; None: they join the one at
    `address`. `resource`: the name by which actors are placed on this node, if any are. `ports`: first and last of
    those that Ray may use beside the head's; None: any."""

    address: str
    host: str
    head_port: int | None = None
    resource: str | None = None
    ports: tuple[int, int] | None = None


def address_towards(head: str) -> str:
    """This machine's address on the way to a head, `HOST:PORT`; nothing is sent.

    Raises:
        ClusterError: the name is unknown, or there is no way.
    """
    name, _, port = head.rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as way:
            way.connect(address)
            return way.getsockname()[0]
    except (OSError, ValueError) as error:
        raise ClusterError(f"There is no way to a cluster at {head!r}: {error}. It must be HOST:PORT.") from error


ON_ALL = (
    "the system does not let the cluster's sockets be bound by another process (seccomp's user notification), and so "
    "Ray listens on all interfaces"
)
"""Why there is a warning."""


def bound_to(host: str) -> str | None:
    """The address that sockets have to be bound to by us; None where Ray does that, or it can't be done here. Blocks
    for some 0.1 s."""
    return host if host != LOOPBACK and binds_alone(host) else None


def listening_warning(node: RayNode) -> str:
    """What to know of the sockets that Ray opens where nobody can bind them to one address."""
    ports = f"{node.ports[0]}-{node.ports[1]}" if node.ports else "any; --ports FIRST-LAST fixes them"
    head = f"{node.head_port} and " if node.head_port is not None else ""
    return (
        f"Not bound to {node.host} alone: {ON_ALL} of this machine. It encrypts nothing. Close its "
        f"ports ({head}{ports}) to all but the cluster's network: see docs/cluster.md for the firewall rule."
    )


@asynccontextmanager
async def connected(node: RayNode) -> AsyncGenerator[None]:
    """Ray's processes run, and this process is connected through them, while the block is open.

    Raises:
        ConfigError: the environment does not require Ray's token.
        ClusterError: Ray does not start, or ends while the block is open.
    """
    ray_cluster.check_environment()
    bound = await anyio.to_thread.run_sync(bound_to, node.host)
    if bound is None and node.host != LOOPBACK:
        logger.warning("%s", listening_warning(node))
    # In the shared folder: paths of sockets end at 108 bytes, of which Ray's own names take 60.
    with borrowed(Path(tempfile.gettempdir()) / f"serena-central-{os.geteuid()}") as folder:
        try:
            async with _started(node, folder, bound):
                try:
                    await anyio.to_thread.run_sync(ray_cluster.connect, node.address, str(folder), bound)
                    yield
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(ray_cluster.disconnect)
        except BaseExceptionGroup as group:
            raise reported_failure(group) from group


@asynccontextmanager
async def _started(node: RayNode, folder: Path, bound: str | None) -> AsyncGenerator[None]:
    environment = {**os.environ, **_environment(node)}
    command = _command(node, folder)
    if bound is not None:
        command = command_bound(bound, command)
    deadline = anyio.current_time() + START_S
    for attempt in range(ATTEMPTS):
        output, started = _Output(), False
        async with supervised(command, Path.home(), environment=environment, ladder=ENDING, merged=True) as child:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(drain, child.stdout, output)
                started = await _until_started(child, output, deadline)
                if started:
                    tasks.start_soon(_watch, child, output)
                    yield
                tasks.cancel_scope.cancel()
            if started:
                return
        if attempt + 1 == ATTEMPTS or _GAVE_UP not in output.text or anyio.current_time() > deadline:
            raise ClusterError(f"Ray does not start at {node.address}. {output.end}")
        logger.warning("Ray did not start in time; it is started again")


async def _until_started(child: ChildProcess, output: "_Output", deadline: float) -> bool:
    """False if the processes ended, or took too long."""
    async with anyio.create_task_group() as tasks:

        async def ended() -> None:
            await child.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(ended)
        with anyio.move_on_at(deadline):
            await output.started.wait()
        tasks.cancel_scope.cancel()
    return output.started.is_set()


async def _watch(child: ChildProcess, output: "_Output") -> None:
    code = await child.wait()
    raise ClusterError(f"Ray ended with code {code}. {output.end}")


class _Output(Tail):
    """Ray's, and whether it says that it has started."""

    def __init__(self) -> None:
        super().__init__(8000)
        self.started = anyio.Event()

    def take(self, chunk: bytes) -> None:
        super().take(chunk)
        if _STARTED in self.kept:
            self.started.set()

    @property
    def end(self) -> str:
        """What it said last."""
        return self.text[-600:].strip()


def _command(node: RayNode, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "serena_central.cluster.ray_loopback", "start", "--block", "--disable-usage-stats"]
    command += ["--node-ip-address", node.host, "--num-cpus", "0", "--object-store-memory", str(OBJECT_STORE_BYTES)]
    command += ["--temp-dir", str(folder), "--include-log-monitor", "false"]
    if node.resource is not None:
        command += ["--resources", json.dumps({node.resource: 1})]
    if node.head_port is None:
        command += ["--address", node.address]
    else:  # neither its dashboard nor its autoscaler: both listen, and neither is used
        command += ["--head", "--port", str(node.head_port), "--include-dashboard", "false", "--no-monitor"]
    if node.ports is not None:
        for port, option in enumerate((*_SINGLE_PORTS, "min-worker-port"), node.ports[0]):
            command += [f"--{option}", str(port)]
        command += ["--max-worker-port", str(_of_ray(node.ports))]
    return command


def _of_ray(ports: tuple[int, int]) -> int:
    """The last port that Ray may use; those after it are the hosts' own."""
    first, last = ports
    return last - (last - first + 1 - len(_SINGLE_PORTS)) // 2


def _environment(node: RayNode) -> dict[str, str]:
    ports = {} if node.ports is None else {HOST_PORTS: f"{_of_ray(node.ports) + 1}-{node.ports[1]}"}
    return {
        **ports,
        **ray_cluster.SETTINGS,
        "RAY_AUTH_MODE": "token",
        "RAY_worker_niceness": "0",  # by default they are nice, and would wait for whatever else the machine does
        "PYTHONUNBUFFERED": "1",
    }
