"""opencode: `opencode.json` or `opencode.jsonc`, in its configuration folder or a project's root."""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Proxy, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    folder = machine.config / "opencode"
    return folder / "opencode.json", folder / "opencode.jsonc"


def stdio(proxy: Proxy) -> Entry:
    entry: dict[str, object] = {"type": "local", "command": [proxy.command], "enabled": True}
    return entry | ({"environment": dict(proxy.environment)} if proxy.environment else {})


def http(server: Server) -> Entry:
    sent = headers(server, reference="{env:%s}", folder="{env:PWD}")
    return {"type": "remote", "url": server.url, "enabled": True, "headers": sent}


CLIENT = Client(
    name="opencode",
    title="opencode",
    about="Over HTTP it has no tools, and says nothing, while no server runs: keep one running with `service install`.",
    form=JSON_WITH_COMMENTS,
    servers=("mcp",),
    user_files=user_files,
    project_files=("opencode.json", "opencode.jsonc"),
    stdio=stdio,
    http=http,
)
