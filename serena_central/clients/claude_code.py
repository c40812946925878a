"""Claude Code: `~/.claude.json`, or a project's `.mcp.json`.

It tells children its conversation and project; without a proxy, a command of ours prints the headers when it connects.
"""

from pathlib import Path

from serena_central.clients.client import Client, Machine, Proxy, Server, plain_stdio
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json",)


def stdio(proxy: Proxy) -> Entry:
    return {"type": "stdio", **plain_stdio(proxy)}


def http(server: Server) -> Entry:
    return {"type": "http", "url": server.url, "headersHelper": server.headers_command}


CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    about="By HTTP, a command of ours prints the headers whenever it connects: the token is in no file.",
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".mcp.json",),
    stdio=stdio,
    http=http,
    then="Start it anew; /mcp shows the connection.",
)
