"""A project host: all parts that tools on one root need, in a process of their own, without sessions and faces.

Each root has a home of its own below the node's, with its journal, index and store; language servers and trust are the
node's. Who begins in such a home ends whoever was there before, a stopped process, too, and then holds its lock: on one
node no two processes ever write a root. Across nodes the store decides (`directory`).
"""

import json
import logging
import os
import resource
import signal
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import psutil
from msgspec import structs

from serena_central.app.build import build_projects
from serena_central.app.lifespan import running_all
from serena_central.cluster.directory import Placement
from serena_central.cluster.host import RunServer
from serena_central.cluster.host_tools import HOST_TOOLS
from serena_central.cluster.remote_session import CarriedUsers, RecordedViews
from serena_central.cluster.run_listener import RunReply
from serena_central.config.load import load_server_config
from serena_central.core.errors import HostUnavailable
from serena_central.core.logs import log_to
from serena_central.core.places import Places
from serena_central.core.progress import Listener
from serena_central.editing.journal import Entry, Journal
from serena_central.editing.transaction import Applier, Fence
from serena_central.files.atomic import write_whole
from serena_central.pool.node_memory import NodeMemory
from serena_central.standalone.lock import lock_at_once
from serena_central.tools.context import Services
from serena_central.web.cluster_view import HostProject, HostServer, HostState

logger = logging.getLogger(__name__)

ENDED_S = 5.0
"""How long the host before may take to be gone after SIGKILL."""


@dataclass
class ProjectHost:
    """A host that runs."""

    root: str
    epoch: int
    services: Services
    server: RunServer
    began_at: float

    async def run(self, message: bytes, on_progress: Listener) -> RunReply:
        """The reply to a run, a message."""
        return await self.server.run(message, on_progress)

    def state(self) -> HostState:
        """What it holds, and what it needs; some milliseconds."""
        return HostState(
            pid=os.getpid(),
            began_at=self.began_at,
            memory_bytes=psutil.Process().memory_info().rss,
            calls=self.server.calls,
            failed=self.server.failed,
            servers=[
                HostServer(one.server, str(one.root), str(one.state), one.memory_bytes)
                for one in self.services.pool.snapshot()
            ],
            projects=[
                HostProject(one.name, one.root, one.files, one.indexed)
                for one in self.services.projects.snapshots()
                if one.open
            ],
        )


def home_of(root: str, node_home: Path) -> Path:
    """The home of a root's hosts on a node."""
    return node_home / "hosts" / f"{Path(root).name}-{blake2b(root.encode(), digest_size=6).hexdigest()}"


@asynccontextmanager
async def hosting(
    placement: Placement, node_home: Path, fence: Fence, inherited: Sequence[Entry], failed: Callable[[], None]
) -> AsyncGenerator[ProjectHost]:
    """Runs the host of a root while the block is open. `fence` raises HostFenced where the epoch is over; `inherited`
    are edits that hosts before it, on other nodes, too, have begun and not ended; `failed` is called if a part of it
    fails.

    Raises:
        HostUnavailable: the root is not a folder here, or the host before can't be ended.
        ConfigError
    """
    root, epoch = placement.root, placement.epoch
    if not os.path.isdir(root):  # noqa: PTH112, ASYNC240 - one stat, before anything runs
        raise HostUnavailable(root, f"there is no such folder on {os.uname().nodename}")
    places = Places(home_of(root, node_home), node_home=node_home)
    places.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone(places, root, epoch):
        loaded = load_server_config({"projects": [root]})
        # What a host keeps is its own: the history of edits that people see is kept by the server that sent a call.
        loaded = replace(loaded, value=structs.replace(loaded.value, database_url=None))
        places.create()
        log_to(places.log_file, loaded.value.log_level, loaded.value.log_format)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        applier = Applier(Journal(places.journal), fence=fence, inherited=inherited)
        parts = build_projects(loaded, places, applier)
        services, memory = services_of_host(parts.services), NodeMemory(node_home / "host-memory")
        services.pool.share_node(memory)
        try:
            async with running_all(lambda _cause: failed(), parts.runs):
                logger.info("host of %s, epoch %d", root, epoch)
                yield ProjectHost(root, epoch, services, RunServer(services, parts.idempotency), time.time())
        finally:
            memory.close()


def services_of_host(services: Services) -> Services:
    """The services with what sessions elsewhere need in place of own ones, and the tools of hosts."""
    return replace(
        services,
        views=RecordedViews(services.store),
        users=CarriedUsers(),
        catalogue=services.catalogue.replacing(*HOST_TOOLS),
    )


@contextmanager
def _alone(places: Places, root: str, epoch: int) -> Generator[None]:
    """Ends the host before, and holds the lock of its home."""
    holder = places.home / "host.json"
    _end(holder, root)
    with places.lock_file.open("a") as lock:
        if not lock_at_once(lock.fileno()):
            raise HostUnavailable(root, "another process holds it on this node")
        me = psutil.Process()
        write_whole(holder, json.dumps({"pid": me.pid, "created": me.create_time(), "epoch": epoch}).encode())
        yield


def _end(holder: Path, root: str) -> None:
    """Kills the process that the file names, if it is still that one."""
    try:
        said = json.loads(holder.read_bytes())
        process = psutil.Process(int(said["pid"]))
        if abs(process.create_time() - float(said["created"])) > 0.01 or process.pid == os.getpid():
            return
        logger.warning("ending the host before of %s, pid %d", root, process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait(ENDED_S)
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return
    except psutil.TimeoutExpired as error:
        raise HostUnavailable(root, f"the host before, pid {error.pid}, can't be ended") from error
