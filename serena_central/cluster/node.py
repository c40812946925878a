"""`serena-central node`: a machine joins the cluster, and what it announces of itself."""

import logging
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from glob import glob
from importlib import metadata
from pathlib import Path

import anyio
import anyio.to_thread
import click
import psutil

from serena_central.cluster import ray_cluster
from serena_central.cluster.directory import SILENT_S, Node
from serena_central.cluster.ray_cluster import DirectoryClient, resource_of
from serena_central.cluster.ray_processes import RayNode, connected
from serena_central.core.errors import ClusterError, InvalidArguments, NodeNameTaken
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.core.tracing import new_call_id
from serena_central.projects.root_policy import has_marker

logger = logging.getLogger(__name__)

ANNOUNCED_EVERY_S = 1.0

JOIN_S = 60.0
"""How long the directory may take to be there and to answer."""

TAKEN_S = 2 * SILENT_S
"""How long another node of the same name may stay: one that was killed is silent by then."""


async def serve_node(name: str, ray: RayNode, patterns: Sequence[str]) -> None:
    """Runs a node until SIGINT or SIGTERM. `patterns`: globs of folders that it offers.

    Raises:
        ConfigError: Ray would not require a token.
        ClusterError: Ray does not start or ends, or no cluster is there.
    """
    ray_cluster.check_environment()
    places = Places.of_user()
    places.create()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running_node(name, ray, patterns, places):
            click.echo(f"Node {name} of the cluster at {ray.address}. Stop: Ctrl-C")
            async for _number in signals:
                break


@asynccontextmanager
async def running_node(
    name: str, ray: RayNode, patterns: Sequence[str], places: Places
) -> AsyncGenerator[DirectoryClient]:
    """A node that is part of its cluster while the block is open."""
    announcer = _Announcer(name, places, patterns)
    async with connected(replace(ray, resource=resource_of(name))):
        directory = await _joined(ray.address, announcer, begins=ray.head_port is not None)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(announcer.run, directory)
                yield directory
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(2, shield=True), suppress(ClusterError):
                await directory.leave(name, announcer.run_id)


async def _joined(address: str, announcer: "_Announcer", *, begins: bool) -> DirectoryClient:
    """Waits until the directory knows the node: the head may still be starting it."""
    problem = ClusterError(f"No Ray cluster answers at {address}.")
    with anyio.move_on_after(JOIN_S) as waiting:
        while True:
            try:
                directory = announcer.made() if begins else DirectoryClient.found()
                await announcer.announce(directory)
                return directory
            except ClusterError as error:
                problem = error
                if isinstance(error, NodeNameTaken):
                    waiting.deadline = min(waiting.deadline, anyio.current_time() + TAKEN_S)
                await anyio.sleep(0.5)
    raise problem


class _Announcer:
    """Tells the directory what a node is, again and again."""

    def __init__(self, name: str, places: Places, patterns: Sequence[str]) -> None:
        self._name = name
        self.run_id = new_call_id()
        self._places = places
        self._patterns = patterns
        self._draining = False
        """As the directory said last; one that is started again hears it from the nodes."""

    def made(self) -> DirectoryClient:
        """The directory, started by this node if there is none."""
        return DirectoryClient.made(self._places.home, self._name)

    async def run(self, directory: DirectoryClient) -> None:
        while True:
            await anyio.sleep(ANNOUNCED_EVERY_S)
            try:
                await self.announce(directory)
            except ClusterError as error:
                logger.warning("%s", error)
            except Exception:
                logger.exception("telling the directory of this node failed")

    async def announce(self, directory: DirectoryClient) -> None:
        """Announces this node, its roots, memory and load; learns whether it is to drain.

        Raises:
            ClusterError
        """
        memory = psutil.virtual_memory()
        node = Node(
            name=self._name,
            run=self.run_id,
            home=str(self._places.home),
            roots=await anyio.to_thread.run_sync(offered, self._patterns),
            available_bytes=memory.available,
            total_bytes=memory.total,
            load=os.getloadavg()[0],
            version=metadata.version("serena-central"),
            draining=self._draining,
        )
        self._draining = await directory.announce(node)


def offered(patterns: Sequence[str]) -> list[str]:
    """The projects that globs mean: folders named without a wildcard, and those with a project's marker that fit one.
    Links are resolved.

    Raises:
        InvalidArguments: a pattern that is not absolute.
    """
    found: set[str] = set()
    for pattern in patterns:
        whole = str(expanded(pattern))
        if not whole.startswith("/"):
            raise InvalidArguments(f"--root {pattern!r} must be an absolute path, or a glob of such.")
        named = not any(sign in whole for sign in "*?[")
        found |= {
            str(Path(folder).resolve())
            for folder in glob(whole)  # noqa: PTH207 - an absolute pattern
            if Path(folder).is_dir() and (named or has_marker(Path(folder)))
        }
    return sorted(found)
