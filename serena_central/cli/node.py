"""`serena-central node`: offers this machine's projects to a cluster."""

import socket

import anyio
import click

from serena_central.cli.cluster import needs_ray


@click.command(
    epilog="Examples: serena-central node --head --root '/src/*'    "
    "serena-central node --join 10.0.0.1:6379 --root '/src/*'",
)
@click.option("--head", is_flag=True, help="Begin a cluster here; other nodes and servers join it.")
@click.option("--join", "address", metavar="HOST:PORT", help="Join the cluster whose head is there.")
@click.option("--host", default="127.0.0.1", show_default=True, help="This machine's address in the cluster.")
@click.option("--port", type=click.IntRange(1, 65535), default=6379, show_default=True, help="With --head: its port.")
@click.option("--name", help="The node's name (default: the machine's).")
@click.option("--root", "roots", multiple=True, required=True, metavar="GLOB", help="Projects to offer (repeatable).")
def command(*, head: bool, address: str | None, host: str, port: int, name: str | None, roots: tuple[str, ...]) -> None:
    """Run a node of a cluster in the foreground; Ctrl-C stops it and the project hosts on it."""
    if head == bool(address):
        raise click.UsageError("Pass either --head or --join HOST:PORT.")
    needs_ray()
    from serena_central.cluster.node import offered, serve_node

    offered(roots)  # refuses wrong patterns before anything starts
    called = name or socket.gethostname()
    head_port = port if head else None
    anyio.run(lambda: serve_node(name=called, address=address or "", host=host, head_port=head_port, patterns=roots))
