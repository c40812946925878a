"""`serena-central cluster`: shows a cluster's nodes and project hosts, and moves them."""

import importlib.util
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import click

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.output import json_option, megabytes, print_json, printable
from serena_central.core.errors import ClusterError, ConfigError
from serena_central.core.words import counted

if TYPE_CHECKING:
    from serena_central.cluster.ray_cluster import DirectoryClient
    from serena_central.web.cluster_view import ClusterView, HostView

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


@click.group(epilog="Example: serena-central cluster status --cluster 10.0.0.1:6379")
def command() -> None:
    """Show a cluster's nodes and project hosts, and move them."""


@command.command(epilog="Example: serena-central cluster status --cluster 10.0.0.1:6379")
@_ADDRESS
@json_option
def status(*, address: str, as_json: bool) -> None:
    """Nodes, and the project hosts on them."""
    said = _asked(address, lambda directory: _view(directory).status())
    if said.problem:
        raise ClusterError(said.problem)
    if as_json:
        _print_json(said)
        return
    for node in said.nodes:
        state = f"silent for {node.heard_s_ago} s" if node.state == "silent" else node.state
        hosts = said.on(node.name)
        click.echo(
            f"{node.name}: {state}, {megabytes(node.available_bytes)} of {megabytes(node.total_bytes)} free, "
            f"load {node.load:.1f}, {len(hosts)} of {len(node.roots)} projects hosted"
        )
        for host in hosts:
            click.echo(f"  {host.root}  epoch {host.epoch}, {_told(host)}")
    if not said.nodes:
        click.echo("No nodes.")


def _print_json(said: Any) -> None:
    """As `/api/v1/cluster` answers."""
    import msgspec  # late, as in all commands

    print_json(msgspec.to_builtins(said))


def _told(host: "HostView") -> str:
    state = host.state
    if state is None:
        return "no answer"
    servers = f"{counted(len(state.servers), 'language server')} with {megabytes(state.servers_bytes)}"
    return f"{megabytes(state.memory_bytes)}, {servers}, {counted(state.calls, 'call')}"


@command.command(epilog="Example: serena-central cluster logs --session s-1 --cluster 10.0.0.1:6379")
@_ADDRESS
@json_option
@click.option("--session", help="Only records of the session with this id (serena-central sessions).")
@click.option("-n", "count", type=click.IntRange(1, 5000), default=50, show_default=True, help="Number of records.")
def logs(*, address: str, as_json: bool, session: str | None, count: int) -> None:
    """The newest records of the logs of all project hosts, on all nodes."""
    said = _asked(address, lambda directory: _view(directory).records(session, count))
    if as_json:
        _print_json(said)
        return
    for one in said.records:
        click.echo(f"{one.node} {one.host}: {printable(one.text)}")
    for node in said.missing:
        click.echo(f"serena-central: the node {node} does not answer; its records are missing.", err=True)


@command.command(epilog="Exits with 1 if a check fails. Example: serena-central cluster doctor --cluster 10.0.0.1:6379")
@_ADDRESS
@json_option
def doctor(*, address: str, as_json: bool) -> None:
    """Check all nodes as `serena-central doctor` checks this machine."""
    from serena_central.cli.doctor import MARKS  # late: `serve` imports this module, and none of the checks

    said = _asked(address, lambda directory: _view(directory).checks())
    if as_json:
        _print_json(said)
    else:
        for one in said.checks:
            click.echo(f"{one.node}: {MARKS[one.state]} {one.name}: {printable(one.says)}")
            if one.advice:
                click.echo(f"        → {printable(one.advice)}")
    if any(one.state == "failed" for one in said.checks):
        raise Unsuccessful


@command.command(epilog="Example: serena-central cluster drain NODE --cluster 10.0.0.1:6379")
@_ADDRESS
@json_option
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
@json_option
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
    from serena_central.cluster.ray_processes import LOOPBACK, ON_ALL, address_towards, bound_to

    own = address_towards(address)
    bound = bound_to(own)
    if bound is None and own != LOOPBACK:
        click.echo(f"Warning: {ON_ALL} while this command runs.", err=True)
    ray_cluster.connect(address, bound=bound)
    try:
        return anyio.run(lambda: ask(ray_cluster.DirectoryClient.found()))
    finally:
        ray_cluster.disconnect()


def _view(directory: "DirectoryClient") -> "ClusterView":
    from serena_central.cluster.ray_view import RayView

    return RayView(directory)
