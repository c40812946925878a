"""Amp: `amp.mcpServers` in `settings.json`, of the user or of a workspace.

https://ampcode.com/manual#mcp
"""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    folder = machine.home / ".config" / "amp"  # on Windows, too
    return folder / "settings.json", folder / "settings.jsonc"


def http(server: Server) -> Entry:
    return {"url": server.url, "headers": headers(server, reference="", folder="")}


CLIENT = Client(
    name="amp",
    title="Amp",
    form=JSON_WITH_COMMENTS,
    servers=("amp.mcpServers",),
    user_files=user_files,
    project_files=(".amp/settings.json", ".amp/settings.jsonc"),
    http=http,
    http_by_reference=False,
    then="Restart Amp; servers of a workspace's file need your approval (`amp mcp approve`).",
)
