"""VS Code: `mcp.json` of the user's profile, or a project's `.vscode/mcp.json`. Hooks are Copilot's: a file of our own
among others in a folder, which VS Code and Copilot CLI read."""

from pathlib import Path

from serena_central.clients.client import JSON, JSON_WITH_COMMENTS, Client, Machine, Proxy, Server, headers, plain_stdio
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import GATE_S, Command, Hooks, HooksForm, gate

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
    about="A project's file names the folder; otherwise VS Code reports its folders (roots).",
    form=JSON_WITH_COMMENTS,
    servers=("servers",),
    user_files=user_files,
    project_files=(".vscode/mcp.json",),
    stdio=stdio,
    http=http,
    then="Press Start above the entry in mcp.json, or run `MCP: List Servers`.",
)


def hooks_file(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", machine.home / ".copilot") / "hooks" / "serena-central.json"


def hooks(command: Command) -> Entry:
    """Events in capitals, so that what it says of a tool looks the same in both of its harnesses."""

    def one(does: str, timeout_s: int) -> list[object]:
        return [{"type": "command", "command": command(does), "timeout": timeout_s}]

    return {
        "PreToolUse": one("enforce", 5),
        "SessionStart": one("session-start", 10),
        "SessionEnd": one("session-end", 5),
    }


GATED = (
    *("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"),
    *("SessionStart", "SessionEnd"),
)


def gates(command: Command) -> Entry:
    return {event: [{"type": "command", "command": command(gate(event)), "timeout": GATE_S}] for event in GATED}


HOOKS = Hooks(
    hooks_file,
    ".github/hooks/serena-central.json",
    HooksForm(JSON, {"version": 1}),
    hooks,
    gates=gates,
    can_ask=True,
)
