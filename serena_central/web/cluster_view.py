"""What the faces show of a cluster: nodes, project hosts, their logs and checks. `cluster/` fills it in."""

from typing import Protocol

import msgspec


class HostServer(msgspec.Struct, frozen=True):
    """A language server of a project host. Memory: bytes of its process tree (PSS), last measurement."""

    server: str
    root: str
    state: str
    memory_bytes: int = 0


class HostProject(msgspec.Struct, frozen=True):
    """An open project of a host."""

    name: str
    root: str
    files: int
    indexed: int


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """What a project host says of itself. `memory_bytes`: its own process, without its servers. `began_at`: Unix time.
    `calls`: since then; `failed`: those of them that did not come to an answer."""

    pid: int
    began_at: float
    memory_bytes: int
    calls: int
    failed: int
    servers: list[HostServer]
    projects: list[HostProject]

    @property
    def servers_bytes(self) -> int:
        return sum(one.memory_bytes for one in self.servers)


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """A project host, and where it is; `state` is None if it does not answer."""

    root: str
    epoch: int
    node: str
    state: HostState | None


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it last announced itself. `state`: alive, draining or silent."""

    name: str
    state: str
    heard_s_ago: float
    available_bytes: int
    total_bytes: int
    load: float
    version: str
    roots: list[str]


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes and hosts. `problem`: why nothing is known of them now, "" otherwise."""

    nodes: list[NodeView] = []
    hosts: list[HostView] = []
    problem: str = ""

    def on(self, node: str) -> list[HostView]:
        return [one for one in self.hosts if one.node == node]


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the log of a project host."""

    node: str
    host: str
    time: str
    level: str
    text: str


class NodeRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records, the oldest first; `missing`: nodes that did not answer."""

    records: list[NodeRecord]
    missing: list[str] = []


class NodeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check of `serena-central doctor`. `state`: ok, info, warning or failed."""

    node: str
    name: str
    state: str
    says: str
    advice: str = ""


class NodeChecks(msgspec.Struct, frozen=True):
    checks: list[NodeCheck]


class ClusterView(Protocol):
    """Asks the cluster. Nothing waits longer than a minute; nodes that don't answer are named."""

    async def status(self) -> ClusterStatus: ...

    async def records(self, session: str | None, count: int) -> NodeRecords:
        """The newest records of all hosts' logs that are about a session; None: about any."""
        ...

    async def checks(self) -> NodeChecks: ...
