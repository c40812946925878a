"""Windsurf: `~/.codeium/windsurf/mcp_config.json`; it has none per project."""

from pathlib import Path

from serena_central.clients.client import Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".codeium" / "windsurf" / "mcp_config.json",)


def http(server: Server) -> Entry:
    return {"serverUrl": server.url, "headers": headers(server, reference="${env:%s}", folder="")}


CLIENT = Client(
    name="windsurf",
    title="Windsurf",
    about="It has no project configuration.",
    servers=("mcpServers",),
    user_files=user_files,
    http=http,
    then="Press Refresh in Cascade's list of MCP servers.",
)
