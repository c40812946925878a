"""Gemini CLI: `.gemini/settings.json` at home or in a project.

By HTTP it does not recover when the server was restarted without our help, and tells nobody when it ends.
"""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Server, headers
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import GATE_S, Command, Hooks, HooksForm, gate, nested


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".gemini" / "settings.json",)


def http(server: Server) -> Entry:
    return {"httpUrl": server.url, "headers": headers(server, reference="$%s", folder="$PWD")}


CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    about="Over stdio, because over HTTP it does not report when it exits.",
    form=JSON_WITH_COMMENTS,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".gemini/settings.json",),
    http=http,
    then="Restart it; /mcp shows the connection.",
)


def hooks_file(machine: Machine) -> Path:
    return machine.home / ".gemini" / "settings.json"


def hooks(command: Command) -> Entry:
    tools = "run_shell_command|grep_search|search_file_content|glob"
    return {
        "BeforeTool": nested(command("enforce"), matcher=tools, timeout=5_000),
        "SessionStart": nested(command("session-start"), timeout=10_000),
        "SessionEnd": nested(command("session-end"), timeout=5_000),
    }


GATED = {
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "Notification": "Notification",
    "PreCompress": "PreCompact",
    "SessionStart": "SessionStart",
    "SessionEnd": "SessionEnd",
}
"""Its events → those of the settings."""


def gates(command: Command) -> Entry:
    return {own: nested(command(gate(event)), timeout=GATE_S * 1000) for own, event in GATED.items()}


HOOKS = Hooks(hooks_file, ".gemini/settings.json", HooksForm(JSON_WITH_COMMENTS), hooks, gates=gates)
