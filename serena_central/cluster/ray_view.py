"""What is seen of a cluster: asked of the directory, of the hosts, and of an actor on each node."""

# Ray has no types for actors, and is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from typing import Any

import anyio
import ray
from ray.exceptions import RayActorError, RayTaskError

from serena_central.cluster.directory import Placement
from serena_central.cluster.ray_cluster import NAMESPACE, DirectoryClient
from serena_central.core.decoding import converted, from_json, from_msgpack
from serena_central.core.errors import ClusterError
from serena_central.web.cluster_view import (
    ClusterStatus,
    HostState,
    HostView,
    NodeCheck,
    NodeChecks,
    NodeRecord,
    NodeRecords,
    NodeView,
)

DIRECTORY_S = 5.0

HOST_S = 5.0
"""How long a host may take to say what it holds."""

REPORT_S = 60.0
"""How long a node may take to read its logs or to check itself."""


class RayView:
    """A `ClusterView`."""

    def __init__(self, directory: DirectoryClient) -> None:
        self._directory = directory

    async def status(self) -> ClusterStatus:
        try:
            said = await self._said()
        except ClusterError as error:
            return ClusterStatus(problem=str(error))
        hosts: list[HostView] = []

        async def ask(placed: Placement) -> None:
            state = await _state_of(placed)
            hosts.append(HostView(root=placed.root, epoch=placed.epoch, node=placed.node, state=state))

        async with anyio.create_task_group() as tasks:
            for one in said["placements"]:
                tasks.start_soon(ask, converted(one, Placement))
        nodes = [
            NodeView(
                state="silent" if not one["alive"] else "draining" if one["draining"] else "alive",
                **{name: one[name] for name in NodeView.__struct_fields__ if name != "state"},
            )
            for one in said["nodes"]
        ]
        return ClusterStatus(
            nodes=sorted(nodes, key=lambda node: node.name), hosts=sorted(hosts, key=lambda host: host.root)
        )

    async def records(self, session: str | None, count: int) -> NodeRecords:
        answers = await self._of_nodes(lambda actor, node: actor.records.remote(node["home"], session, count))
        records = [
            NodeRecord(node=node, host=host, time=time, level=level, text=text)
            for node, said in answers.items()
            if said is not None
            for host, time, level, text in from_msgpack(said)
        ]
        records.sort(key=lambda record: record.time)
        missing = [node for node, said in answers.items() if said is None]
        return NodeRecords(records=records[len(records) - min(count, len(records)) :], missing=missing)

    async def checks(self) -> NodeChecks:
        answers = await self._of_nodes(lambda actor, _node: actor.checks.remote())
        checks: list[NodeCheck] = []
        for node, said in answers.items():
            if not said:
                checks.append(NodeCheck(node=node, name="node", state="failed", says="it does not answer"))
                continue
            checks += [NodeCheck(node=node, **one) for one in from_json(said)]
        return NodeChecks(checks)

    async def _said(self) -> dict[str, Any]:
        try:
            with anyio.fail_after(DIRECTORY_S):
                return await self._directory.status()
        except TimeoutError as error:
            raise ClusterError("The cluster's directory does not answer.") from error

    async def _of_nodes(self, ask: Callable[[Any, dict[str, Any]], Any]) -> dict[str, bytes | None]:
        """Node → what an actor on it answers; None where nobody does."""
        nodes = (await self._said())["nodes"]
        answers: dict[str, bytes | None] = {node["name"]: None for node in sorted(nodes, key=lambda node: node["name"])}

        async def one(node: dict[str, Any]) -> None:
            try:
                with anyio.fail_after(REPORT_S):
                    answers[node["name"]] = await ask(ray.get_actor(node["agent"], namespace=NAMESPACE), node)
            except (ValueError, TimeoutError, RayActorError, RayTaskError):
                return

        async with anyio.create_task_group() as tasks:
            for node in nodes:
                if node["alive"] and node["agent"] is not None:
                    tasks.start_soon(one, node)
        return answers


async def _state_of(placed: Placement) -> HostState | None:
    """What a host says of itself; None if it does not answer."""
    try:
        actor = ray.get_actor(placed.host, namespace=NAMESPACE)
        with anyio.fail_after(HOST_S):
            said = await actor.status.remote()
        return None if said is None else from_msgpack(said, HostState)
    except (ValueError, TimeoutError, RayActorError, RayTaskError):
        return None
