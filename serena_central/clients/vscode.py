"""VS Code: `mcp.json` of the user's profile, or a project's `.vscode/mcp.json`."""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Proxy, Server, headers, plain_stdio
from serena_central.clients.forms import Entry

FOLDER = "${workspaceFolder}"
"""Fails in a user's file where a window has no folder or several: the client then names them when it is asked."""


def user_folder(machine: Machine) -> Path:
    """Where the profile lies, and what extensions store."""
    return machine.applications / "Code" / "User"


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (user_folder(machine) / "mcp.json",)


def stdio(proxy: Proxy) -> Entry:
    arguments = ["--project", FOLDER] if proxy.scope == "project" else []
    return {"type": "stdio", **plain_stdio(proxy), "args": arguments}


def http(server: Server) -> Entry:
    folder = FOLDER if server.scope == "project" else ""
    return {"type": "http", "url": server.url, "headers": headers(server, reference="${env:%s}", folder=folder)}


CLIENT = Client(
    name="vscode",
    title="VS Code",
    about="In a project's file the folder is named; else VS Code names its folders when it is asked.",
    form=JSON_WITH_COMMENTS,
    servers=("servers",),
    user_files=user_files,
    project_files=(".vscode/mcp.json",),
    stdio=stdio,
    http=http,
    then="Press Start above the entry in mcp.json, or run `MCP: List Servers`.",
)
