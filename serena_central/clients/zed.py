"""Zed: `settings.json` of the user, or a project's `.zed/settings.json`. It starts servers in the project's folder."""

from pathlib import Path

from serena_central.clients.client import JSON_WITH_COMMENTS, Client, Machine, Server, headers
from serena_central.clients.forms import Entry


def user_files(machine: Machine) -> tuple[Path, ...]:
    if machine.platform == "win32":
        return (machine.applications / "Zed" / "settings.json",)
    return (machine.config / "zed" / "settings.json",)


def http(server: Server) -> Entry:
    return {"url": server.url, "headers": headers(server, reference="", folder="")}


CLIENT = Client(
    name="zed",
    title="Zed",
    about="It starts servers in the project's folder.",
    form=JSON_WITH_COMMENTS,
    servers=("context_servers",),
    user_files=user_files,
    project_files=(".zed/settings.json",),
    http=http,
    http_by_reference=False,
    then="Zed reloads the file when it changes; the agent panel's settings show the connection.",
)
