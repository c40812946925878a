"""Codex: `~/.codex/config.toml`, or a trusted project's `.codex/config.toml`; hooks in `hooks.json` beside it.

Over HTTP it sends its conversation's id with each call, and its folder from a variable; but nothing starts the server.
"""

from pathlib import Path

from serena_central.clients.client import JSON, TOKEN_VARIABLE, Client, Machine, Server
from serena_central.clients.forms import Entry
from serena_central.clients.hooks import GATE_S, Command, Hooks, HooksForm, gate, nested
from serena_central.clients.toml_form import TomlForm


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.folder("CODEX_HOME", machine.home / ".codex") / "config.toml",)


def http(server: Server) -> Entry:
    entry: dict[str, object] = {"url": server.url}
    if server.token is None:
        entry["bearer_token_env_var"] = TOKEN_VARIABLE
    else:
        entry["http_headers"] = {"Authorization": f"Bearer {server.token}"}
    return entry | {"env_http_headers": {"X-Serena-Project": "PWD"}}


CLIENT = Client(
    name="codex",
    title="Codex",
    about="Its first turn waits one second for tools, and a server that has to be started takes longer: for "
    "`codex exec`, keep one running with `service install`, or set `mcp_optional_startup_grace_ms = 0` at the top of "
    "its file. Over HTTP it has no tools, and says nothing, while no server runs.",
    form=TomlForm(),
    servers=("mcp_servers",),
    user_files=user_files,
    project_files=(".codex/config.toml",),
    http=http,
)


def hooks_file(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", machine.home / ".codex") / "hooks.json"


def hooks(command: Command) -> Entry:
    """It searches by shell commands alone, and has no hook for a session's end."""
    return {
        "PreToolUse": nested(command("enforce"), matcher="Bash", timeout=5),
        "SessionStart": nested(command("session-start"), matcher="startup|resume|clear", timeout=10),
    }


GATED = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart")


def gates(command: Command) -> Entry:
    return {event: nested(command(gate(event)), timeout=GATE_S) for event in GATED}


HOOKS = Hooks(
    hooks_file,
    ".codex/hooks.json",
    HooksForm(JSON),
    hooks,
    gates=gates,
    then="Codex runs them once you have trusted them; /hooks lists them.",
)
