"""The directory of a cluster: which nodes there are, which host holds which root, and the epoch of each root.

One for the whole cluster. It alone starts hosts, so that a root has one host at a time. Who that is, and under which
epoch, is in the store before the host starts; so is every edit before a host renames its first file, if the host is
still the one. A host gets the edits that those before it have begun and not ended: it brings them to an end before it
does anything else. It knows no Ray: `Hosts` starts and ends them.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import msgspec

from serena_central.core.errors import ClusterError, HostFenced, HostUnavailable, NodeNameTaken, StoreError
from serena_central.store.rows import HostEditRow
from serena_central.store.store import Store

if TYPE_CHECKING:
    from serena_central.store.queries import Queries

Answer = TypeVar("Answer")

SILENT_S = 2.5
"""A node that was not heard of for so long gets a root only if no other one has it …"""

STALE_S = 20.0
"""… and after so long none."""

ALIVE_S = 1.5
"""How long a node has to show that it lives, when a host on it was lost."""

LEAST_FREE_BYTES = 256 * 1024 * 1024
"""A node with less memory than that gets no more roots."""

START_S = 60.0
"""How long a host may take until it answers, on a machine that does much else."""


class Node(msgspec.Struct, kw_only=True):
    """What a node announces of itself. `roots`: the folders that it has and offers."""

    name: str
    run: str
    """Its process: machines that share a name, as copies do, are told apart by it."""
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


class Hosts(Protocol):
    """Starts and ends project hosts."""

    def prepare(self, node: str) -> None:
        """A node joined: what makes the start of its hosts quicker may begin."""
        ...

    async def is_alive(self, node: str) -> bool:
        """Whether anything on a node answers; may take as long as it likes."""
        ...

    async def answers(self, host: str) -> bool:
        """Whether a host answers; may take as long as it likes."""
        ...

    def agent(self, node: str) -> str | None:
        """The name of what answers questions about a node; None if nothing does."""
        ...

    def new(self, node: str) -> str:
        """The name of a host on a node that has no root yet."""
        ...

    async def start(self, placement: Placement, home: str, begun: list[bytes]) -> None:
        """Gives a new host its root, and edits (entries of journals) that those before it have begun; returns once it
        answers. One that does not start is not left behind."""
        ...

    async def stop(self, host: str, *, lost: bool) -> None:
        """Ends a host; one that is gone is no error. `lost`: it does not answer, and is not asked to end."""
        ...

    def end_others(self, placed: set[str]) -> None:
        """Ends hosts that were there before this directory, except these."""
        ...


class Directory:
    """Belongs to one event loop."""

    def __init__(
        self, hosts: Hosts, store: Store, *, settling_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`settling_s`: how long nodes may take to announce themselves to a new directory, which does not say before
        what there is."""
        self._hosts = hosts
        self._store = store
        self._clock = clock
        self._settled_at = clock() + settling_s
        self._nodes: dict[str, Node] = {}
        self._heard: dict[str, anyio.Event] = {}
        """Set when a node announces itself the next time."""
        self._locks: dict[str, anyio.Lock] = {}
        self._placements: dict[str, Placement] = {}
        self._failed: dict[str, HostUnavailable] = {}
        """Root → why the last start of a host for it failed."""
        self._reading = anyio.Lock()
        self._read = False
        """Whether the placements of the directory before are known."""

    # --- nodes -----------------------------------------------------------------------------------------------------

    def announce(self, node: Node) -> bool:
        """A node says that it lives, and what it has. Returns whether it drains: the next time it says that itself, to
        another directory, too.

        Raises:
            NodeNameTaken: another node of this name was heard just now.
        """
        known = self._nodes.get(node.name)
        if known is not None:
            if known.run != node.run and self._clock() - known.heard_at < SILENT_S:
                raise NodeNameTaken(node.name, known.home)
            node.draining = known.draining
        node.heard_at = self._clock()
        self._nodes[node.name] = node
        self._heard.pop(node.name, anyio.Event()).set()
        if known is None:
            self._hosts.prepare(node.name)
        return node.draining

    def leave(self, name: str, run: str) -> None:
        """A node ends."""
        if (known := self._nodes.get(name)) is not None and known.run == run:
            del self._nodes[name]

    async def roots(self) -> list[str]:
        """All roots that living nodes offer; one below another belongs to that."""
        await self._settle()
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

    async def place(self, root: str, lost_epoch: int = 0, unreachable: str = "") -> Placement:
        """The host of a root, started if there is none. `lost_epoch`: the caller lost the host of that epoch.
        `unreachable`: why the caller can't reach it, although it may live; one that answers is not replaced, since it
        serves others.

        Raises:
            HostUnavailable: no node can hold it, or the database can't be asked; says why.
        """
        await self._know_placements(root)
        failed = self._failed.get(root)
        async with self._lock(root):
            placed = self._placements.get(root)
            if placed is not None and placed.epoch > lost_epoch:
                return placed
            # Fronts ask again while they wait: a start that failed meanwhile has failed for all of these requests.
            if (since := self._failed.get(root)) is not None and since is not failed:
                raise HostUnavailable(root, since.reason)
            if placed is not None and unreachable:
                with anyio.move_on_after(ALIVE_S):
                    if await self._hosts.answers(placed.host):
                        raise HostUnavailable(
                            root, f"its host on {placed.node!r} runs, but this server can't reach it at {unreachable}"
                        )
            preferred = await self._still_alive(placed) if placed is not None else None
            try:
                started = await self._start(root, self._choose(root, preferred=preferred), lost=True)
            except HostUnavailable as error:
                self._failed[root] = HostUnavailable(root, error.reason)  # without the frames of this one
                raise
            self._failed.pop(root, None)
            return started

    async def _still_alive(self, placed: Placement) -> str | None:
        """The node of a lost host, if it lives: its journal tells what the host has done. Else others go first."""
        alive = False
        with anyio.move_on_after(ALIVE_S):
            async with anyio.create_task_group() as tasks:

                async def asked() -> None:
                    nonlocal alive
                    if await self._hosts.is_alive(placed.node):
                        alive = True
                        tasks.cancel_scope.cancel()

                tasks.start_soon(asked)
                await self._heard.setdefault(placed.node, anyio.Event()).wait()
                alive = True
                tasks.cancel_scope.cancel()
        if alive:
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
        await self._know_placements(root)
        async with self._lock(root):
            placed = self._placements.get(root)
            avoided = placed.node if placed is not None and node is None else None
            return await self._start(root, self._choose(root, wanted=node, avoided=avoided))

    async def drain(self, name: str, *, draining: bool = True) -> dict[str, str]:
        """A node gets no more roots, and those that it holds, or is about to, move; root → where to, or why it stays.

        Raises:
            ClusterError: there is no such node, or the database can't be asked.
        """
        try:
            await self._know_placements(name)
        except HostUnavailable as error:
            raise ClusterError(f"It is not known what {name!r} holds: {error.reason}.") from error
        node = self._nodes.get(name)
        if node is None:
            raise ClusterError(f"There is no node {name!r}. Nodes: {', '.join(sorted(self._nodes)) or 'none'}.")
        node.draining = draining
        moved: dict[str, str] = {}
        for root in sorted({*self._placements, *self._locks}) if draining else ():
            async with self._lock(root):  # a start that has chosen this node before is waited for
                placed = self._placements.get(root)
                if placed is None or placed.node != name:
                    continue
                try:
                    moved[root] = (await self._start(root, self._choose(root, avoided=name))).node
                except ClusterError as error:
                    moved[root] = str(error)
        return moved

    # --- edits -----------------------------------------------------------------------------------------------------

    async def begin_edit(self, placement: Placement, edit: str, entry: bytes) -> None:
        """A host is about to rename an edit's first file; `entry` is that of its journal.

        Raises:
            HostFenced: it must not.
        """
        root, host = placement.root, placement.host
        row = HostEditRow(id=edit, root=root, entry=entry)
        try:
            if await self._store.ask(lambda queries: queries.begin_host_edit(row, host)):
                return
            holder = await self._store.ask(lambda queries: queries.holder(root))
        except StoreError as error:
            raise HostFenced(root, placement.epoch, problem=str(error)) from error
        known = self._placements.get(root)
        if known is not None and known.host == host:  # another directory has placed it, or the database is another one
            del self._placements[root]
        raise HostFenced(root, placement.epoch, holder.epoch if holder is not None else 0)

    async def holds(self, placement: Placement) -> bool:
        """Whether a host is still the one of its root; what can't be known counts as no."""
        try:
            holder = await self._store.ask(lambda queries: queries.holder(placement.root))
        except StoreError:
            return False
        return holder is not None and holder.host == placement.host

    async def end_edit(self, edit: str) -> None:
        """An edit that was begun has come to its end. One that stays is brought to it once more, to no effect."""
        with suppress(StoreError):
            await self._store.ask(lambda queries: queries.end_host_edits([edit]))

    async def status(self) -> dict[str, Any]:
        """Nodes and placements, as plain data; those of the directory before only if the database can be asked."""
        with suppress(HostUnavailable):
            await self._know_placements("")
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

    async def _start(self, root: str, node: Node, *, lost: bool = False) -> Placement:
        """Ends the host before, and starts one of the next epoch. `lost`: the one before does not answer."""
        host = self._hosts.new(node.name)
        before = self._placements.get(root)  # now: an edit that the store refuses it has it forgotten
        try:
            epoch = await self._stored(root, lambda queries: queries.place_root(root, node.name, host))
            # From here on the host before begins no edit. What it has begun is known, and ends here, or there before.
            self._placements.pop(root, None)
            if before is not None:
                await self._hosts.stop(before.host, lost=lost)
            begun = await self._stored(root, lambda queries: queries.host_edits(root))
        except HostUnavailable:
            await self._hosts.stop(host, lost=False)
            raise
        placement = Placement(root=root, epoch=epoch, node=node.name, host=host)
        try:
            with anyio.fail_after(START_S):
                await self._hosts.start(placement, node.home, [edit.entry for edit in begun])
        except TimeoutError as error:
            raise HostUnavailable(root, f"its host on {node.name!r} did not start in {START_S:.0f} s") from error
        for edit in begun:
            await self.end_edit(edit.id)
        self._placements[root] = placement
        return placement

    async def _settle(self) -> None:
        await anyio.sleep(max(0.0, self._settled_at - self._clock()))

    async def _know_placements(self, root: str) -> None:
        """Reads what the directory before has placed, once, when the nodes are known."""
        await self._settle()
        async with self._reading:
            if self._read:
                return
            rows = await self._stored(root, lambda queries: queries.hosted_roots())
            self._hosts.end_others({row.host for row in rows})
            for row in rows:
                self._placements[row.root] = Placement(root=row.root, epoch=row.epoch, node=row.node, host=row.host)
            self._read = True

    async def _stored(self, root: str, query: "Callable[[Queries], Answer]") -> Answer:
        try:
            return await self._store.ask(query)
        except StoreError as error:
            raise HostUnavailable(root, str(error)) from error
