"""`serena-central node`: a machine joins the cluster: Ray below a supervisor, and what the node announces of itself."""

import json
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from glob import glob
from importlib import metadata
from pathlib import Path

import anyio
import anyio.to_thread
import click
import psutil

from serena_central.cluster import ray_cluster
from serena_central.cluster.directory import Node
from serena_central.cluster.ray_cluster import DirectoryClient, resource_of
from serena_central.core.errors import ClusterError, InvalidArguments
from serena_central.core.places import Places
from serena_central.processes.child import supervised
from serena_central.processes.ladder import Ladder
from serena_central.processes.output import Tail, drain
from serena_central.projects.root_policy import has_marker

logger = logging.getLogger(__name__)

ANNOUNCED_EVERY_S = 1.0

JOIN_S = 60.0
"""How long Ray may take to start, and the directory to be there."""

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Ray's own memory for large objects: messages are small, and go another way."""

ENDING = Ladder(0.0, 8.0)
"""Ray ends its own processes, and the hosts among them."""


async def serve_node(*, name: str, address: str, host: str, head_port: int | None, patterns: Sequence[str]) -> None:
    """Runs a node until SIGINT or SIGTERM. `head_port`: it begins a cluster at this port; None: it joins the one at
    `address`. `host`: this machine's address in the cluster. `patterns`: globs of folders that it offers.

    Raises:
        ConfigError: Ray would not require a token.
        ClusterError: Ray does not start, or no cluster is there.
    """
    ray_cluster.check_environment()
    places = Places.of_user()
    places.create()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running_node(name, address or f"{host}:{head_port}", host, head_port, patterns, places):
            click.echo(f"Node {name} of the cluster at {address or f'{host}:{head_port}'}. Stop: Ctrl-C")
            async for _number in signals:
                break


@asynccontextmanager
async def running_node(
    name: str, address: str, host: str, head_port: int | None, patterns: Sequence[str], places: Places
) -> AsyncGenerator[DirectoryClient]:
    """A node that is part of its cluster while the block is open."""
    async with _ray(name, address, host, head_port):
        directory = await _directory(address, name, places, begins=head_port is not None)
        try:
            await _announce(directory, name, places, patterns)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_announcing, directory, name, places, patterns)
                yield directory
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(2, shield=True), suppress(ClusterError):
                await directory.leave(name)
            await anyio.to_thread.run_sync(ray_cluster.disconnect)


@asynccontextmanager
async def _ray(name: str, address: str, host: str, head_port: int | None) -> AsyncGenerator[None]:
    """Ray's processes of this node, while the block is open."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    command += ["--node-ip-address", host, "--num-cpus", "0", "--object-store-memory", str(OBJECT_STORE_BYTES)]
    command += ["--resources", json.dumps({resource_of(name): 1})]
    begins = ["--head", "--port", str(head_port), "--include-dashboard", "false"]
    command += ["--address", address] if head_port is None else begins
    # Ray's workers are nice by default, and would wait for whatever else the machine does.
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_worker_niceness": "0"}
    environment = {**os.environ, **ours}
    tail = Tail(4000)
    async with (
        supervised(command, Path.home(), environment=environment, ladder=ENDING, merged=True) as child,
        anyio.create_task_group() as tasks,
    ):

        async def watch() -> None:
            code = await child.wait()
            raise ClusterError(f"Ray ended with code {code}. {tail.text[-600:].strip()}")

        tasks.start_soon(drain, child.stdout, tail)
        tasks.start_soon(watch)
        yield
        tasks.cancel_scope.cancel()


async def _directory(address: str, name: str, places: Places, *, begins: bool) -> DirectoryClient:
    """Waits until Ray answers and the directory is there."""
    problem = ClusterError(f"No Ray cluster answers at {address}.")
    with anyio.move_on_after(JOIN_S):
        while True:
            try:
                await anyio.to_thread.run_sync(ray_cluster.connect, address, abandon_on_cancel=True)
                break
            except ClusterError as error:
                problem = error
                await anyio.sleep(0.5)
        while True:
            try:
                return DirectoryClient.made(places.home / "cluster.json", name) if begins else DirectoryClient.found()
            except ClusterError as error:
                problem = error
                await anyio.sleep(0.5)
    raise problem


async def _announcing(directory: DirectoryClient, name: str, places: Places, patterns: Sequence[str]) -> None:
    while True:
        await anyio.sleep(ANNOUNCED_EVERY_S)
        try:
            await _announce(directory, name, places, patterns)
        except ClusterError as error:
            logger.warning("%s", error)


async def _announce(directory: DirectoryClient, name: str, places: Places, patterns: Sequence[str]) -> None:
    memory = psutil.virtual_memory()
    node = Node(
        name=name,
        home=str(places.home),
        roots=await anyio.to_thread.run_sync(offered, patterns),
        available_bytes=memory.available,
        total_bytes=memory.total,
        load=os.getloadavg()[0],
        version=metadata.version("serena-central"),
    )
    await directory.announce(node)


def offered(patterns: Sequence[str]) -> list[str]:
    """The projects that globs mean: folders named without a wildcard, and those with a project's marker that fit one.
    Links are resolved.

    Raises:
        InvalidArguments: a pattern that is not absolute.
    """
    found: set[str] = set()
    for pattern in patterns:
        expanded = str(Path(pattern).expanduser())
        if not expanded.startswith("/"):
            raise InvalidArguments(f"--root {pattern!r} must be an absolute path, or a glob of such.")
        named = not any(sign in expanded for sign in "*?[")
        found |= {
            str(Path(folder).resolve())
            for folder in glob(expanded)  # noqa: PTH207 - an absolute pattern
            if Path(folder).is_dir() and (named or has_marker(Path(folder)))
        }
    return sorted(found)
