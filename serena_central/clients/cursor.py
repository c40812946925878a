"""Cursor: `.cursor/mcp.json` at home or in a project; hooks in `hooks.json` beside it."""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine, Proxy, Server, headers, plain_stdio
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import GATE_S, Command, Hooks, HooksForm, gate

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
    about="The proxy gets the open folder from Cursor.",
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".cursor/mcp.json",),
    stdio=stdio,
    http=http,
    then="Enable it under Settings, MCP.",
)


def hooks_file(machine: Machine) -> Path:
    return machine.home / ".cursor" / "hooks.json"


def hooks(command: Command) -> Entry:
    return {
        "preToolUse": [{"command": command("enforce"), "matcher": "Shell|Grep|Glob"}],
        "sessionStart": [{"command": command("session-start")}],
        "sessionEnd": [{"command": command("session-end")}],
    }


GATED = {
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "stop": "Stop",
    "subagentStop": "SubagentStop",
    "preCompact": "PreCompact",
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
}
"""Its events → those of the settings."""


def gates(command: Command) -> Entry:
    return {own: [{"command": command(gate(event)), "timeout": GATE_S}] for own, event in GATED.items()}


HOOKS = Hooks(hooks_file, ".cursor/hooks.json", HooksForm(JSON, {"version": 1}), hooks, gates=gates)
