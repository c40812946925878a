"""`serena-central mcp`: the MCP servers of all configuration files, and which of them may be used."""

from pathlib import Path

import click

from serena_central.claude_config.effective import load
from serena_central.claude_config.sources import servers_of
from serena_central.cli.output import json_option, print_json, print_table, say
from serena_central.cli.trust import project_root
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from serena_central.projects.root_settings import RootSettings


@click.group(epilog="Example: serena-central mcp list")
def command() -> None:
    """List the MCP servers of all configuration files."""


@command.command("list", epilog="Example: serena-central mcp list --project ~/src/app")
@click.option("--project", "folder", type=click.Path(path_type=Path), help="Of this folder; else of the one around.")
@json_option
def list_servers(*, folder: Path | None, as_json: bool) -> None:
    """List the servers by name: source, state, and why. Variables are shown as they are written."""
    root = project_root(folder)
    trusted = RootSettings(load_server_config({}), Places.of_user()).trust.is_trusted(root)
    found = servers_of(load(root), trusted=trusted)
    if as_json:
        print_json(
            {
                "servers": [
                    {
                        "name": one.name,
                        "source": str(one.source),
                        "state": str(one.state),
                        "why": one.why,
                        "transport": one.kind,
                        "target": one.target,
                        "file": one.place.file,
                        "line": one.place.line,
                    }
                    for one in found.found
                ],
                "problems": [str(one) for one in found.problems],
            }
        )
        return
    rows = [(one.name, one.source, one.state, one.kind, one.target, one.place, one.why) for one in found.found]
    headers = ["NAME", "SOURCE", "STATE", "TRANSPORT", "TARGET", "FILE", "WHY"]
    print_table(headers, rows, empty="No MCP servers are configured.")
    for problem in found.problems:
        say(f"serena-central: {problem}", err=True)
