"""Cline: one file for the user, of the extension in VS Code or of its command line."""

from pathlib import Path

from serena_central.clients import vscode
from serena_central.clients.client import Client, Machine, Server, headers
from serena_central.clients.forms import Entry

EXTENSION = Path("globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")


def user_files(machine: Machine) -> tuple[Path, ...]:
    extension = vscode.user_folder(machine) / EXTENSION
    command_line = machine.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    named = machine.environment.get("CLINE_MCP_SETTINGS_PATH")
    return (Path(named),) if named else (extension, command_line)


def http(server: Server) -> Entry:
    return {"type": "streamableHttp", "url": server.url, "headers": headers(server, reference="", folder="")}


CLIENT = Client(
    name="cline",
    title="Cline",
    about="It starts servers in `/` and names no folder: pass `project=` in a call, or activate the project first.",
    servers=("mcpServers",),
    user_files=user_files,
    http=http,
    http_by_reference=False,
    then="Cline reloads the file when it changes; MCP Servers, Configure shows the connection.",
)
