"""What `serena-central serve --cluster` adds to the server: the way to the cluster, and the front that uses it."""

import os
import secrets
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from serena_central.app.build import Cluster
from serena_central.core.errors import ConfigError
from serena_central.core.places import Places

LOCAL = "local"
"""In place of an address: a cluster of this machine alone, which lasts as long as the server."""


@asynccontextmanager
async def fronting(address: str, patterns: Sequence[str], places: Places) -> AsyncGenerator[Cluster]:
    """Makes the front of a server, while the block is open. `patterns`: what a local cluster offers.

    Raises:
        ConfigError: the environment does not require Ray's token, or a local cluster would offer nothing.
        ClusterError: no cluster answers.
    """
    if address == LOCAL:
        if not patterns:
            raise ConfigError(
                "projects", "names no project, nor does --project: a local cluster would have nothing to hold"
            )
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(24))
    # Late: Ray reads when it is imported how it has to authenticate.
    from serena_central.cluster.front import ClusterFront
    from serena_central.cluster.node import running_node
    from serena_central.cluster.ray_cluster import DirectoryClient
    from serena_central.cluster.ray_processes import LOOPBACK, RayNode, address_towards, connected
    from serena_central.cluster.ray_view import RayView

    def cluster(directory: DirectoryClient) -> Cluster:
        return Cluster(lambda services, local: ClusterFront(services, local, directory), RayView(directory))

    if address != LOCAL:
        async with connected(RayNode(address, address_towards(address))):
            directory = DirectoryClient.found()
            yield cluster(directory)
        return
    port = _free_port(LOOPBACK)
    ray = RayNode(f"{LOOPBACK}:{port}", LOOPBACK, port)
    async with running_node(LOCAL, ray, patterns, places) as directory:
        yield cluster(directory)


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as listener:
        return listener.getsockname()[1]
