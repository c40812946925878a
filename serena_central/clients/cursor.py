"""Cursor: `.cursor/mcp.json` at home or in a project."""

from pathlib import Path

from serena_central.clients.client import Client, Machine, Proxy, Server, headers, plain_stdio
from serena_central.clients.forms import Entry

FOLDER = "${workspaceFolder}"
"""The folder that holds the project's `.cursor`; in a user's file it would be the home folder."""


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".cursor" / "mcp.json",)


def stdio(proxy: Proxy) -> Entry:
    return {**plain_stdio(proxy), **({"args": ["--project", FOLDER]} if proxy.scope == "project" else {})}


def http(server: Server) -> Entry:
    folder = FOLDER if server.scope == "project" else ""
    return {"url": server.url, "headers": headers(server, reference="${env:%s}", folder=folder)}


CLIENT = Client(
    name="cursor",
    title="Cursor",
    about="The proxy finds the open folder by what Cursor tells it.",
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".cursor/mcp.json",),
    stdio=stdio,
    http=http,
    then="Switch it on under Settings, MCP.",
)
