"""`serena-central cluster`: shows a cluster's nodes and project hosts, and moves them."""

import importlib.util
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import click

from serena_central.core.errors import ConfigError

if TYPE_CHECKING:
    from serena_central.cluster.ray_cluster import DirectoryClient

Ask = Callable[["DirectoryClient"], Awaitable[Any]]


def needs_ray() -> None:
    """Raises ConfigError without the extra."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("cluster", "requires extra packages: pipx install --force '.[cluster]' in a checkout")


_ADDRESS = click.option(
    "--cluster",
    "address",
    required=True,
    envvar="SERENA_CENTRAL_CLUSTER",
    metavar="HOST:PORT",
    help="The head's address.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(epilog="Example: serena-central cluster status --cluster 10.0.0.1:6379")
def command() -> None:
    """Show a cluster's nodes and project hosts, and move them."""


@command.command(epilog="Example: serena-central cluster status --cluster 10.0.0.1:6379")
@_ADDRESS
@_JSON
def status(*, address: str, as_json: bool) -> None:
    """Nodes, and the project hosts on them."""
    said = _asked(address, _status)
    if as_json:
        click.echo(json.dumps(said))
        return
    for node in said["nodes"]:
        state = "draining" if node["draining"] else "alive" if node["alive"] else f"silent for {node['heard_s_ago']} s"
        free, total = node["available_bytes"] >> 20, node["total_bytes"] >> 20
        click.echo(
            f"{node['name']}: {state}, {free} of {total} MB free, load {node['load']:.1f}, "
            f"{len(node['hosts'])} of {len(node['roots'])} projects hosted"
        )
        for host in (one for one in said["placements"] if one["node"] == node["name"]):
            seen = host.get("status")
            more = f"{seen['memory_bytes'] >> 20} MB, {len(seen['servers'])} language servers" if seen else "no answer"
            click.echo(f"  {host['root']}  epoch {host['epoch']}, {more}")
    if not said["nodes"]:
        click.echo("No nodes.")


@command.command(epilog="Example: serena-central cluster drain NODE --cluster 10.0.0.1:6379")
@_ADDRESS
@_JSON
@click.option("--undo", is_flag=True, help="Let it take projects again.")
@click.argument("node")
def drain(*, address: str, as_json: bool, undo: bool, node: str) -> None:
    """Move all project hosts off a node, which takes no more."""
    moved = _asked(address, lambda directory: directory.drain(node, draining=not undo))
    if as_json:
        click.echo(json.dumps(moved))
        return
    for root, where in moved.items():
        click.echo(f"{root} → {where}")
    click.echo(f"{node} {'takes projects again' if undo else 'takes no more projects'}.")


@command.command(epilog="Example: serena-central cluster move ~/src/app --to NODE --cluster 10.0.0.1:6379")
@_ADDRESS
@_JSON
@click.option("--to", "node", help="The node (default: the one with the most free memory).")
@click.argument("root")
def move(*, address: str, as_json: bool, node: str | None, root: str) -> None:
    """Move a project's host to another node, or start it again on the given one."""
    placed = _asked(address, lambda directory: directory.move(root, node))
    click.echo(
        json.dumps({"root": placed.root, "node": placed.node, "epoch": placed.epoch})
        if as_json
        else f"{placed.root} is on {placed.node} (epoch {placed.epoch})."
    )


def _asked(address: str, ask: Ask) -> Any:
    needs_ray()
    from serena_central.cluster import ray_cluster

    ray_cluster.connect(address)
    try:
        return anyio.run(lambda: ask(ray_cluster.DirectoryClient.found()))
    finally:
        ray_cluster.disconnect()


async def _status(directory: "DirectoryClient") -> dict[str, Any]:
    """The directory's, with what each host says of itself."""
    import msgspec

    from serena_central.cluster.directory import Placement
    from serena_central.cluster.ray_cluster import HostWire

    said = await directory.status()
    async with anyio.create_task_group() as tasks:
        for one in said["placements"]:

            async def ask(placement: dict[str, Any]) -> None:
                wire = HostWire(msgspec.convert({**placement}, Placement))
                placement["status"] = await wire.status()

            tasks.start_soon(ask, one)
    return said
