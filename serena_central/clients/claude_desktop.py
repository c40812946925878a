"""Claude Desktop: `claude_desktop_config.json`; only programs can be named in it, and it has none per project."""

from pathlib import Path

from serena_central.clients.client import Client, Machine, Proxy, plain_stdio
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.applications / "Claude" / "claude_desktop_config.json",)


def stdio(proxy: Proxy) -> Entry:
    return {**plain_stdio(proxy), "args": ["--context", "desktop-app"]}


CLIENT = Client(
    name="claude-desktop",
    title="Claude Desktop",
    about="It only supports stdio servers and has no working folder: activate a project first.",
    servers=("mcpServers",),
    user_files=user_files,
    stdio=stdio,
)
