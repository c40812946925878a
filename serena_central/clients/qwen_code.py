"""Qwen Code: `.qwen/settings.json` at home or in a project; a fork of Gemini CLI, whose entries it takes.

https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/
"""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".qwen" / "settings.json",)


def http(server: Server) -> Entry:
    return {"httpUrl": server.url, "headers": headers(server, reference="", folder="")}


CLIENT = Client(
    name="qwen-code",
    title="Qwen Code",
    form=JSON_WITH_COMMENTS,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".qwen/settings.json",),
    http=http,
    http_by_reference=False,
    then="Restart it; /mcp shows the connection.",
)
