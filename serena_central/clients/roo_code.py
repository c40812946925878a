"""Roo Code: `mcp_settings.json` of the VS Code extension, or a project's `.roo/mcp.json`.

https://docs.roocode.com/features/mcp/using-mcp-in-roo
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine, Server, headers
from serena_central.clients.forms import Entry
from serena_central.clients.vscode import user_folder


def user_files(machine: Machine) -> tuple[Path, ...]:
    settings = Path("globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json")
    return (user_folder(machine) / settings,)


def http(server: Server) -> Entry:
    return {"type": "streamable-http", "url": server.url, "headers": headers(server, reference="", folder="")}


CLIENT = Client(
    name="roo-code",
    title="Roo Code",
    about="A program that it starts for all projects may have no working folder: then activate a project first.",
    form=JSON,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".roo/mcp.json",),
    http=http,
    http_by_reference=False,
    then="Roo Code reloads the file when it changes; its MCP view shows the connection.",
)
