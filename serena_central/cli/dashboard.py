"""`serena-central dashboard`: a one-time link to the running server's pages, opened in the browser."""

import webbrowser

import click

from serena_central.cli.output import json_option, print_json
from serena_central.cli.remote import Remote

ANYWHERE = {"//0.0.0.0:": "//127.0.0.1:", "//[::]:": "//[::1]:"}
"""A server that listens on all addresses is found on this machine's own."""


def page_address(url: str, path: str) -> str:
    """Where a browser on this machine finds a page of the server that serves MCP at `url`."""
    base = url.removesuffix("/mcp")
    for listening, reached in ANYWHERE.items():
        base = base.replace(listening, reached)
    return base + path


@click.command(epilog="Examples: serena-central dashboard    serena-central dashboard --print")
@click.option("--print", "only_print", is_flag=True, help="Print the link instead of opening it.")
@json_option
def command(*, only_print: bool, as_json: bool) -> None:
    """Open the dashboard: sign this user's browser in by a link that works once, within ten minutes."""
    remote = Remote()
    opens = not (only_print or as_json)
    # Others can read the command line that the browser is started with.
    link = page_address(remote.url, remote.post("/api/v1/dashboard/link", {"here_alone": opens})["path"])
    if as_json:
        print_json({"url": link})
    else:
        click.echo(link)
    if opens:
        webbrowser.open(link)
