"""Kilo Code's CLI: `~/.kilocode/cli/global/settings/mcp_settings.json`, or a project's `.kilocode/mcp.json`.

https://kilo.ai/docs/features/mcp/using-mcp-in-cli
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine
from serena_central.clients.roo_code import http


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".kilocode" / "cli" / "global" / "settings" / "mcp_settings.json",)


CLIENT = Client(
    name="kilo-code",
    title="Kilo Code",
    about="The user's file is that of its CLI; a project's file is read by the editor's extension, too.",
    form=JSON,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".kilocode/mcp.json",),
    http=http,
    http_by_reference=False,
)
