"""Claude Code: `~/.claude.json`, or a project's `.mcp.json`; hooks in `.claude/settings.json` at home or in a project.

It tells children its conversation and project; without a proxy, a command of ours prints the headers when it connects.
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine, Proxy, Server, plain_stdio
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import GATE_S, Command, Hooks, HooksForm, gate, nested


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json",)


def stdio(proxy: Proxy) -> Entry:
    return {"type": "stdio", **plain_stdio(proxy)}


def http(server: Server) -> Entry:
    return {"type": "http", "url": server.url, "headersHelper": server.headers_command}


CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    about=(
        "Over HTTP it gets its headers from a serena-proxy command at each connection; the token is in no file. It "
        "runs that command in its own folder, so the project is that of the nearest ancestor process (Linux only). On "
        "a busy machine it may begin before its servers are connected, and then finds their tools by its tool search "
        "alone; with `MCP_CONNECTION_NONBLOCKING=false` in its environment it waits for them."
    ),
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".mcp.json",),
    stdio=stdio,
    http=http,
    http_platforms=("linux",),
    then="Restart it; /mcp shows the connection.",
)


def hooks_file(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "settings.json"


def hooks(command: Command) -> Entry:
    return {
        "PreToolUse": nested(command("enforce"), matcher="Grep|Glob|Search|Bash", timeout=5),
        "SessionStart": nested(command("session-start"), matcher="startup|resume|clear|compact", timeout=10),
        "SessionEnd": nested(command("session-end"), timeout=5),
    }


GATED = (
    *("PreToolUse", "PostToolUse", "UserPromptSubmit", "Notification", "Stop", "SubagentStop", "PreCompact"),
    *("SessionStart", "SessionEnd"),
)


def gates(command: Command) -> Entry:
    return {event: nested(command(gate(event)), timeout=GATE_S) for event in GATED}


HOOKS = Hooks(hooks_file, ".claude/settings.json", HooksForm(JSON), hooks, gates=gates, can_ask=True)
