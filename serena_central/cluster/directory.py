"""The directory of a cluster: which nodes there are, which host holds which root, and the epoch of each root.

One for the whole cluster. It alone starts hosts, so that a root has one host at a time; each new one gets the next
epoch, which is on the disk before the host starts. A host asks for its root's epoch before it writes, and does not
write under an older one. It knows no Ray: `Hosts` starts and ends them.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.errors import ClusterError, HostUnavailable
from serena_central.files.atomic import write_whole

SILENT_S = 2.5
"""A node that was not heard of for so long gets a root only if no other one has it …"""

STALE_S = 20.0
"""… and after so long none."""

LEAST_FREE_BYTES = 256 * 1024 * 1024
"""A node with less memory than that gets no more roots."""

START_S = 60.0
"""How long a host may take until it answers, on a machine that does much else."""


class Node(msgspec.Struct, kw_only=True):
    """What a node announces of itself. `roots`: the folders that it has and offers."""

    name: str
    home: str
    roots: list[str]
    available_bytes: int
    total_bytes: int
    load: float = 0.0
    version: str = ""
    heard_at: float = 0.0
    """By the directory's clock."""
    draining: bool = False


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Which host holds a root."""

    root: str
    epoch: int
    node: str
    host: str
    """The host's name in the cluster."""


class _Kept(msgspec.Struct):
    """By root."""

    epochs: dict[str, int] = {}
    placements: dict[str, Placement] = {}


class Hosts(Protocol):
    """Starts and ends project hosts."""

    def prepare(self, node: str) -> None:
        """A node joined: what makes the start of its hosts quicker may begin."""
        ...

    async def is_alive(self, node: str) -> bool:
        """Whether anything on a node answers."""
        ...

    def agent(self, node: str) -> str | None:
        """The name of what answers questions about a node; None if nothing does."""
        ...

    async def start(self, root: str, epoch: int, node: str, home: str) -> str:
        """Returns the host's name once it answers. One that does not start is not left behind."""
        ...

    async def stop(self, placement: Placement) -> None:
        """Ends a host; one that is gone is no error."""
        ...


class Directory:
    """Belongs to one event loop."""

    def __init__(self, hosts: Hosts, file: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`file` keeps epochs and placements.

        Raises:
            ClusterError: it can't be read.
        """
        self._hosts = hosts
        self._file = file
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._locks: dict[str, anyio.Lock] = {}
        kept = _read(file)
        self._epochs = kept.epochs
        self._placements = kept.placements

    # --- nodes -----------------------------------------------------------------------------------------------------

    def announce(self, node: Node) -> None:
        """A node says that it lives, and what it has."""
        known = self._nodes.get(node.name)
        node.draining = known.draining if known is not None else False
        node.heard_at = self._clock()
        self._nodes[node.name] = node
        if known is None:
            self._hosts.prepare(node.name)

    def leave(self, name: str) -> None:
        """A node ends."""
        self._nodes.pop(name, None)

    def roots(self) -> list[str]:
        """All roots that living nodes offer; one below another belongs to that."""
        offered = sorted({root for node in self._living() for root in node.roots})
        kept: list[str] = []
        for root in offered:
            if not (kept and Path(root).is_relative_to(kept[-1])):
                kept.append(root)
        return kept

    def _living(self) -> list[Node]:
        now = self._clock()
        return [node for node in self._nodes.values() if now - node.heard_at < STALE_S]

    # --- hosts -----------------------------------------------------------------------------------------------------

    async def place(self, root: str, lost_epoch: int = 0) -> Placement:
        """The host of a root, started if there is none. `lost_epoch`: the caller lost the host of that epoch.

        Raises:
            HostUnavailable: no node can hold it; says why.
        """
        async with self._lock(root):
            placed = self._placements.get(root)
            if placed is not None and placed.epoch > lost_epoch:
                return placed
            preferred = await self._still_alive(placed) if placed is not None else None
            return await self._start(root, self._choose(root, preferred=preferred))

    async def _still_alive(self, placed: Placement) -> str | None:
        """The node of a lost host, if it lives: its journal tells what the host has done. Else others go first."""
        if await self._hosts.is_alive(placed.node):
            return placed.node
        node = self._nodes.get(placed.node)
        if node is not None:
            node.heard_at = min(node.heard_at, self._clock() - SILENT_S)
        return None

    async def move(self, root: str, node: str | None = None) -> Placement:
        """Puts a root on another node, or on the given one.

        Raises:
            HostUnavailable
        """
        async with self._lock(root):
            placed = self._placements.get(root)
            avoided = placed.node if placed is not None and node is None else None
            return await self._start(root, self._choose(root, wanted=node, avoided=avoided))

    async def drain(self, name: str, *, draining: bool = True) -> dict[str, str]:
        """A node gets no more roots, and those that it holds move; root → where to, or why it stays.

        Raises:
            ClusterError: there is no such node.
        """
        node = self._nodes.get(name)
        if node is None:
            raise ClusterError(f"There is no node {name!r}. Nodes: {', '.join(sorted(self._nodes)) or 'none'}.")
        node.draining = draining
        moved: dict[str, str] = {}
        for root, placed in list(self._placements.items()):
            if draining and placed.node == name:
                try:
                    moved[root] = (await self.move(root)).node
                except ClusterError as error:
                    moved[root] = str(error)
        return moved

    def epoch(self, root: str) -> int:
        """The newest epoch of a root; a host of an older one must not write."""
        return self._epochs.get(root, 0)

    def status(self) -> dict[str, Any]:
        """Nodes and placements, as plain data."""
        living = {node.name for node in self._living()}
        return {
            "nodes": [
                {
                    **msgspec.structs.asdict(node),
                    "heard_s_ago": round(self._clock() - node.heard_at, 1),
                    "alive": node.name in living,
                    "agent": self._hosts.agent(node.name),
                    "hosts": sorted(root for root, placed in self._placements.items() if placed.node == node.name),
                }
                for node in self._nodes.values()
            ],
            "placements": [msgspec.structs.asdict(placed) for placed in self._placements.values()],
        }

    # --- inside ----------------------------------------------------------------------------------------------------

    def _lock(self, root: str) -> anyio.Lock:
        return self._locks.setdefault(root, anyio.Lock())

    def _choose(
        self, root: str, *, wanted: str | None = None, avoided: str | None = None, preferred: str | None = None
    ) -> Node:
        """The living node with the most free memory among those that have the root, or the preferred one."""
        having = [node for node in self._living() if root in node.roots and (wanted in (None, node.name))]
        if not having:
            where = f"the node {wanted!r} does not offer it" if wanted else "no living node offers it"
            raise HostUnavailable(root, where)
        fit = [node for node in having if (not node.draining or wanted) and node.name != avoided]
        if not fit:
            raise HostUnavailable(root, "all nodes that offer it drain, or are the one that it is on")
        now = self._clock()
        best = max(fit, key=lambda node: (now - node.heard_at < SILENT_S, node.name == preferred, node.available_bytes))
        if best.available_bytes < LEAST_FREE_BYTES:
            raise HostUnavailable(root, f"no node that offers it has {LEAST_FREE_BYTES >> 20} MB of memory left")
        return best

    async def _start(self, root: str, node: Node) -> Placement:
        """Ends the host before, and starts one of the next epoch."""
        before = self._placements.get(root)
        epoch = self._epochs[root] = self._epochs.get(root, 0) + 1
        self._placements.pop(root, None)
        self._keep()  # from here on the host before can't write
        if before is not None:
            await self._hosts.stop(before)
        try:
            with anyio.fail_after(START_S):
                host = await self._hosts.start(root, epoch, node.name, node.home)
        except TimeoutError as error:
            raise HostUnavailable(root, f"its host on {node.name!r} did not start in {START_S:.0f} s") from error
        placement = Placement(root=root, epoch=epoch, node=node.name, host=host)
        self._placements[root] = placement
        self._keep()
        return placement

    def _keep(self) -> None:
        write_whole(self._file, msgspec.json.encode(_Kept(self._epochs, self._placements)))


def _read(file: Path) -> _Kept:
    """
    Raises:
        ClusterError: what is there can't be read; going on without it would hand out old epochs again.
    """
    try:
        return from_json(file.read_bytes(), _Kept)
    except FileNotFoundError:
        return _Kept()
    except (OSError, msgspec.DecodeError) as error:
        raise ClusterError(f"The cluster's epochs in {file} can't be read: {error}.") from error
