"""`serena-central node`: offers this machine's projects to a cluster."""

import socket

import anyio
import click

from serena_central.cli.cluster import needs_ray


def _ports(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 65536):
        raise click.BadParameter("must be FIRST-LAST, such as 20000-20999.")
    return int(first), int(last)


@click.command(
    epilog="Examples: serena-central node --head --root '/src/*'    "
    "serena-central node --join 10.0.0.1:6379 --root '/src/*'",
)
@click.option("--head", is_flag=True, help="Begin a cluster here; other nodes and servers join it.")
@click.option("--join", "address", metavar="HOST:PORT", help="Join the cluster whose head is there.")
@click.option("--host", help="This machine's address in the cluster (default: the one towards the head).")
@click.option("--port", type=click.IntRange(1, 65535), default=6379, show_default=True, help="With --head: its port.")
@click.option("--ports", callback=_ports, metavar="FIRST-LAST", help="The other ports that Ray uses (default: any).")
@click.option("--name", help="The node's name (default: the machine's).")
@click.option("--root", "roots", multiple=True, required=True, metavar="GLOB", help="Projects to offer (repeatable).")
def command(
    *,
    head: bool,
    address: str | None,
    host: str | None,
    port: int,
    ports: tuple[int, int] | None,
    name: str | None,
    roots: tuple[str, ...],
) -> None:
    """Run a node of a cluster in the foreground; Ctrl-C stops it and the project hosts on it."""
    if head == bool(address):
        raise click.UsageError("Pass either --head or --join HOST:PORT.")
    needs_ray()
    from serena_central.cluster.node import offered, serve_node
    from serena_central.cluster.ray_processes import LEAST_PORTS, LOOPBACK, RayNode, address_towards

    if ports is not None and ports[1] - ports[0] + 1 < LEAST_PORTS:
        raise click.UsageError(f"--ports must hold {LEAST_PORTS} ports or more.")
    offered(roots)  # refuses wrong patterns before anything starts
    own = host or (address_towards(address) if address else LOOPBACK)
    ray = RayNode(address or f"{own}:{port}", own, port if head else None, ports=ports)
    anyio.run(serve_node, name or socket.gethostname(), ray, roots)
