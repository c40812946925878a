"""GitHub Copilot CLI: `~/.copilot/mcp-config.json`, or a repository's `.github/mcp.json`.

https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine, Proxy, Server, headers, plain_stdio
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.folder("COPILOT_HOME", machine.home / ".copilot") / "mcp-config.json",)


def stdio(proxy: Proxy) -> Entry:
    return {"type": "stdio", **plain_stdio(proxy), "tools": ["*"]}


def http(server: Server) -> Entry:
    return {"type": "http", "url": server.url, "headers": headers(server, reference="", folder=""), "tools": ["*"]}


CLIENT = Client(
    name="copilot-cli",
    title="GitHub Copilot CLI",
    form=JSON,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".github/mcp.json",),
    stdio=stdio,
    http=http,
    http_by_reference=False,
    then="Restart it; /mcp show shows the connection.",
)
