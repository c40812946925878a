"""Project hosts in this process, and a server that opens no projects itself: all of a cluster but Ray."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serena_central.app.build import Cluster, build_projects
from serena_central.app.lifespan import running_all
from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import HostAddress
from serena_central.cluster.front import ClusterFront
from serena_central.cluster.host import RunServer
from serena_central.cluster.project_host import services_of_host
from serena_central.cluster.run_listener import listening
from serena_central.config.load import load_server_config
from serena_central.core.errors import HostUnavailable
from serena_central.core.places import Places
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from serena_central.tools.context import Services
from serena_central.web.cluster_view import ClusterStatus, NodeChecks, NodeRecords
from tests.support.central import RunningCentral, running_central, sources_in


@dataclass
class Held:
    """A directory of hosts that run; roots without one can't be placed."""

    offered: list[str]
    addresses: dict[str, HostAddress] = field(default_factory=dict)
    services: dict[str, Services] = field(default_factory=dict)

    async def roots(self) -> list[str]:
        return self.offered

    async def place(
        self, root: str, lost_epoch: int = 0, unreachable: str = ""
    ) -> tuple[Placement, HostAddress | None]:
        if root not in self.addresses:
            raise HostUnavailable(root, "no node offers it")
        return Placement(root=root, epoch=1, node="here", host=root), self.addresses[root]


class _Seen:
    async def status(self) -> ClusterStatus:
        return ClusterStatus()

    async def records(self, session: str | None, count: int) -> NodeRecords:
        return NodeRecords(records=[])

    async def checks(self) -> NodeChecks:
        return NodeChecks([])


@asynccontextmanager
async def holding(folder: Path, *roots: Path, settings: dict[str, Any] | None = None) -> AsyncGenerator[Held]:
    """Runs a host for each root; all have one home for language servers, `folder/home`."""
    held = Held([str(root) for root in roots])
    Places(folder / "home").create()
    async with AsyncExitStack() as stack:
        for number, root in enumerate(roots):
            given = {"projects": [str(root)], "auto_install": False, **(settings or {})}
            loaded = load_server_config(given, sources_in(folder))
            places = Places(folder / "hosts" / f"{root.name}-{number}", node_home=folder / "home")
            places.create()
            parts = build_projects(loaded, places, Applier(Journal(places.journal)))
            services = services_of_host(parts.services)
            await stack.enter_async_context(running_all(lambda _cause: None, parts.runs))
            server = RunServer(services, parts.idempotency)
            address = await stack.enter_async_context(listening(server.run, "127.0.0.1"))
            held.addresses[str(root)], held.services[str(root)] = address, services
        yield held


@asynccontextmanager
async def fronting(folder: Path, held: Held, settings: dict[str, Any] | None = None) -> AsyncGenerator[RunningCentral]:
    """Runs a server of which hosts hold the projects, below `folder/front`."""
    cluster = Cluster(lambda services, local: ClusterFront(services, local, held), _Seen())
    async with running_central(folder / "front", settings, cluster=cluster) as central:
        yield central
