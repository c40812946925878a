"""The page of a cluster's nodes and the project hosts on them."""

import msgspec

from serena_central.web.cluster_view import ClusterStatus, HostView, NodeView
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.responses import NotFound

PATH = "/nodes"


class HostRow(msgspec.Struct, frozen=True):
    """A project host. `answers`: it does now; else what follows is 0. `began_at` is Unix time."""

    root: str
    epoch: int
    answers: bool
    pid: int
    began_at: float
    memory_bytes: int
    servers: list[str]
    servers_bytes: int
    files: int
    indexed: int
    calls: int
    failed: int


class NodeRow(msgspec.Struct, frozen=True):
    """A node. `used`: of its memory, in percent; `idle_roots`: offered folders that no host holds now."""

    name: str
    state: str
    heard_s_ago: float
    available_bytes: int
    total_bytes: int
    used: float
    load: float
    version: str
    hosts: list[HostRow]
    memory_bytes: int
    idle_roots: list[str]


class Nodes(msgspec.Struct, frozen=True):
    """By name. `problem`: why nothing is known of them, "" otherwise."""

    rows: list[NodeRow]
    problem: str


async def nodes(visit: Visit) -> Nodes:
    if visit.parts.cluster is None:
        raise NotFound("This server has no cluster.")
    status = await visit.parts.cluster.status()
    return Nodes([_node(one, status) for one in status.nodes], status.problem)


def _node(node: NodeView, status: ClusterStatus) -> NodeRow:
    hosts = [_host(one) for one in status.on(node.name)]
    held = {one.root for one in status.hosts}
    return NodeRow(
        name=node.name,
        state=node.state,
        heard_s_ago=node.heard_s_ago,
        available_bytes=node.available_bytes,
        total_bytes=node.total_bytes,
        used=round(100 * (1 - node.available_bytes / max(node.total_bytes, 1)), 1),
        load=node.load,
        version=node.version,
        hosts=hosts,
        memory_bytes=sum(one.memory_bytes + one.servers_bytes for one in hosts),
        idle_roots=[root for root in node.roots if root not in held],
    )


def _host(host: HostView) -> HostRow:
    state = host.state
    return HostRow(
        root=host.root,
        epoch=host.epoch,
        answers=state is not None,
        pid=state.pid if state else 0,
        began_at=state.began_at if state else 0.0,
        memory_bytes=state.memory_bytes if state else 0,
        servers=[f"{one.server} ({one.state})" for one in state.servers] if state else [],
        servers_bytes=state.servers_bytes if state else 0,
        files=sum(one.files for one in state.projects) if state else 0,
        indexed=sum(one.indexed for one in state.projects) if state else 0,
        calls=state.calls if state else 0,
        failed=state.failed if state else 0,
    )


PAGE = Page(path=PATH, title="Nodes", template="nodes.html", sections={"nodes": Section("nodes/_nodes.html", nodes)})
