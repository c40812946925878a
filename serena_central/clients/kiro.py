"""Kiro, the editor and the CLI: `.kiro/settings/mcp.json` at home or in a workspace.

https://kiro.dev/docs/mcp/configuration
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".kiro" / "settings" / "mcp.json",)


def http(server: Server) -> Entry:
    return {"url": server.url, "headers": headers(server, reference="${%s}", folder="")}


CLIENT = Client(
    name="kiro",
    title="Kiro",
    form=JSON,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".kiro/settings/mcp.json",),
    http=http,
    then="Kiro reloads the file when it changes; the MCP panel, or /mcp in the CLI, shows the connection.",
)
