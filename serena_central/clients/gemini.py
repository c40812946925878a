"""Gemini CLI: `.gemini/settings.json` at home or in a project.

By HTTP it does not recover when the server was restarted without our help, and tells nobody when it ends.
"""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".gemini" / "settings.json",)


def http(server: Server) -> Entry:
    return {"httpUrl": server.url, "headers": headers(server, reference="$%s", folder="$PWD")}


CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    about="By stdio, since by HTTP it sends nothing when it ends.",
    form=JSON_WITH_COMMENTS,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".gemini/settings.json",),
    http=http,
    then="Start it anew; /mcp shows the connection.",
)
