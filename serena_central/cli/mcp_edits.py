"""The commands of `serena-central mcp` that change files: add and remove servers, allow and forbid them.

Comments, order and layout of a file stay as they are. A running server goes by the files at the next call.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import click
import msgspec

from serena_central.claude_config.document import Document, as_list
from serena_central.claude_config.effective import load
from serena_central.claude_config.locations import FOLDER, LOCAL_SETTINGS, PROJECT_SERVERS
from serena_central.claude_config.sources import Server, Servers, State, servers_of
from serena_central.claude_config.substitution import revealed
from serena_central.claude_config.tiers import Tier
from serena_central.cli.claude_edits import FORM, SERVERS, change, file_of
from serena_central.cli.given import GivenPath, json_given
from serena_central.cli.output import json_option, print_json, say
from serena_central.cli.trust import project_root
from serena_central.clients.forms import members_of
from serena_central.config.load import load_server_config
from serena_central.core.decoding import converted
from serena_central.core.errors import InvalidArguments
from serena_central.core.places import Places
from serena_central.hub.own_server import starts_ourselves
from serena_central.projects.root_settings import RootSettings

APPROVED, FORBIDDEN = "enabledMcpjsonServers", "disabledMcpjsonServers"
"""Lists of names in settings: what counts of .mcp.json."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

scope_option = click.option(
    "--scope",
    type=click.Choice(["local", "project", "user"]),
    default="local",
    show_default=True,
    help="local: your settings of this project; project: .mcp.json, for all who work on it; user: all your projects.",
)
folder_option = click.option("--project", "folder", type=GivenPath(path_type=Path), help="Of this folder.")


@click.command(
    epilog="""\b
Examples:
  serena-central mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  serena-central mcp add github --url https://example.com/mcp --header 'Authorization: Bearer ${GITHUB_TOKEN}'
  serena-central mcp add db --env PGHOST=localhost --scope project -- uvx some-database-server
"""
)
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="Of a remote server.")
@click.option("--sse", is_flag=True, help="The remote server speaks the older SSE transport.")
@click.option("--header", "headers", multiple=True, metavar="NAME: VALUE", help="For a remote server.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="For a program.")
@scope_option
@click.option("--force", is_flag=True, help="Replace an entry of this name.")
@folder_option
@json_option
def add(
    name: str,
    command: Sequence[str],
    *,
    url: str | None,
    sse: bool,
    headers: Sequence[str],
    variables: Sequence[str],
    scope: str,
    force: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Add a server: a program with its arguments, or a URL. ${VARIABLES} stay as they are until it is started."""
    if bool(command) == bool(url):
        raise click.UsageError("Give a program behind --, or --url.")
    entry: dict[str, Any]
    if url:
        _check_url(url)
        entry = {"type": "sse" if sse else "http", "url": url}
        if headers:
            entry["headers"] = dict(_pair(one, ":") for one in headers)
    else:
        entry = {"command": command[0], "args": [*command[1:]]}
        if variables:
            entry["env"] = dict(_pair(one, "=") for one in variables)
    _add(name, entry, scope, folder, force=force, as_json=as_json)


@click.command(
    "add-json", epilog="""Example: serena-central mcp add-json files '{"command": "npx", "args": ["-y", "pkg"]}'"""
)
@click.argument("name")
@click.argument("entry")
@scope_option
@click.option("--force", is_flag=True, help="Replace an entry of this name.")
@folder_option
@json_option
def add_json(name: str, entry: str, *, scope: str, force: bool, folder: Path | None, as_json: bool) -> None:
    """Add a server by its entry as .mcp.json has it."""
    try:
        value: Any = json_given(entry)
    except ValueError as error:
        raise click.BadParameter(f"The entry is not JSON: {error}") from error
    if not isinstance(value, dict) or not ({"command", "url"} & value.keys()):
        raise click.BadParameter("The entry must be a JSON object with a command or a url.")
    _check_types(cast("dict[str, Any]", value))
    _add(name, cast("dict[str, Any]", value), scope, folder, force=force, as_json=as_json)


def _check_types(entry: dict[str, Any]) -> None:
    try:
        converted(entry, _Entry)
    except msgspec.ValidationError as error:
        raise click.BadParameter(f"The entry is not valid: {error}.") from error


class _Entry(msgspec.Struct):
    """What starts or reaches a server."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


@click.command(epilog="Example: serena-central mcp remove files --scope user")
@click.argument("name")
@scope_option
@folder_option
@json_option
def remove(name: str, *, scope: str, folder: Path | None, as_json: bool) -> None:
    """Remove a server's entry from the file of a scope."""
    file = _file_of(scope, folder)

    def edit(text: str) -> str:
        if name not in _entries(file, text):
            known = "`serena-central mcp list` shows where entries stand."
            raise InvalidArguments(f"{file} has no server {name!r}. {known}")
        return FORM.take(text, (SERVERS, name))

    change(file, SERVERS, edit)
    _report(name, file, "removed", folder, as_json=as_json)


@click.command(epilog="Example: serena-central mcp enable files")
@click.argument("name")
@folder_option
@json_option
def enable(name: str, *, folder: Path | None, as_json: bool) -> None:
    """Allow a server: one of .mcp.json in your settings of this project, any other in its entry."""
    _allow(name, folder, allowed=True, as_json=as_json)


@click.command(epilog="Example: serena-central mcp disable files")
@click.argument("name")
@folder_option
@json_option
def disable(name: str, *, folder: Path | None, as_json: bool) -> None:
    """Forbid a server: one of .mcp.json in your settings of this project, any other in its entry."""
    _allow(name, folder, allowed=False, as_json=as_json)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address in them, or no number as a port
        right = False
    if not right:
        raise click.BadParameter(f"{url!r} is not an http or https URL.")


def _pair(text: str, separator: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise click.BadParameter(f"{text!r} needs the form NAME{separator}VALUE.")
    return name.strip(), value.strip() if separator == ":" else value


def _add(name: str, entry: dict[str, Any], scope: str, folder: Path | None, *, force: bool, as_json: bool) -> None:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("A name has up to 64 letters, digits, dots, hyphens and underscores.")
    file = _file_of(scope, folder)

    def edit(text: str) -> str:
        if name in _entries(file, text) and not force:
            raise InvalidArguments(f"{file} has a server {name!r} already. Replace it with --force.")
        return FORM.put(text, (SERVERS, name), entry)

    change(file, SERVERS, edit)
    _report(name, file, "added", folder, as_json=as_json)


def _allow(name: str, folder: Path | None, *, allowed: bool, as_json: bool) -> None:
    server = _counting(name, folder)
    if server is None:
        raise _unknown(name, folder)
    entry_file = Path(server.place.file)
    if entry_file.name == PROJECT_SERVERS:
        file = project_root(folder) / FOLDER / LOCAL_SETTINGS
        change(file, SERVERS, lambda text: _listed(file, text, name, allowed=allowed))
    elif entry_file.name == ".claude.json":
        raise InvalidArguments(f"Claude Code keeps {name} in {entry_file}: change it with `claude mcp`.")
    else:
        file, keys = entry_file, (SERVERS, name, "disabled")

        def edit(text: str) -> str | None:
            if not allowed:
                return FORM.put(text, keys, True)
            return FORM.take(text, keys) if "disabled" in members_of(_entries(file, text).get(name)) else None

        change(file, SERVERS, edit)
    _report(name, file, "enabled" if allowed else "disabled", folder, as_json=as_json)


def _listed(file: Path, text: str, name: str, *, allowed: bool) -> str:
    """The text of local settings with a name in the one list of servers and not in the other."""
    value = members_of(Document(str(file), text).value)
    for key, wanted in ((APPROVED, allowed), (FORBIDDEN, not allowed)):
        names = [one for one in as_list(value.get(key)) or () if one != name] + ([name] if wanted else [])
        if wanted or name in (as_list(value.get(key)) or ()):
            text = FORM.put(text, (key,), names)
    return text


def _file_of(scope: str, folder: Path | None) -> Path:
    if scope == "project":
        return project_root(folder) / PROJECT_SERVERS
    return file_of(Tier.USER if scope == "user" else Tier.LOCAL, folder)


def _entries(file: Path, text: str) -> dict[str, Any]:
    return members_of(members_of(Document(str(file), text).value).get(SERVERS))


def remote_server(name: str, folder: Path | None) -> tuple[str, str]:
    """The URL of a remote server that may be used, and its kind (`http` or `sse`).

    Raises:
        InvalidArguments: no such server, or it is a program.
    """
    server = _counting(name, folder)
    if server is None:
        raise _unknown(name, folder)
    if server.state is not State.ENABLED:
        raise InvalidArguments(f"{name} is not used ({server.state}): {server.why}.")
    if server.kind == "stdio":
        raise InvalidArguments(f"{name} is a program, not a remote server: there is nothing to log in at.")
    return revealed(server.entry["url"]), server.kind


def unless_ourselves(server: Server) -> Server:
    """The same, or that it is never used because it starts this very server."""
    command = [server.entry.get("command", ""), *server.entry.get("args", ())]
    if server.state is State.ENABLED and starts_ourselves(command):
        return server._replace(state=State.UNSUPPORTED, why="it is serena-central itself, whose tools are there anyway")
    return server


def _counting(name: str, folder: Path | None) -> Server | None:
    """The entry that counts under a name, as it stands now."""
    return next((unless_ourselves(one) for one in _servers(folder).found if one.name == name), None)


def _servers(folder: Path | None) -> Servers:
    root = project_root(folder)
    trusted = RootSettings(load_server_config({}), Places.of_user()).trust.is_trusted(root)
    return servers_of(load(root), trusted=trusted)


def _unknown(name: str, folder: Path | None) -> InvalidArguments:
    """That no entry of a name can be used, and why."""
    if errors := _servers(folder).errors(name):
        return InvalidArguments(f"{name} is not used: {errors[0]}")
    return InvalidArguments(f"No file has an MCP server {name!r}. `serena-central mcp list` lists them.")


def _report(name: str, file: Path, what: str, folder: Path | None, *, as_json: bool) -> None:
    """What was done, and what counts under the name now."""
    server = _counting(name, folder)
    errors = _servers(folder).errors(name) if server is None else []
    state = str(server.state) if server is not None else "not valid" if errors else "not configured"
    if as_json:
        why = server.why if server is not None else "; ".join(map(str, errors))
        print_json({"name": name, "file": str(file), "done": what, "state": state, "why": why})
        return
    say(f"{file}: {name} {what}.")
    if server is not None and server.place.file != str(file):
        say(f"{server.place} still has a server of this name.")
    if server is not None and server.state not in {State.ENABLED, what}:
        say(f"It is not started ({server.state}): {server.why}.")
    for error in errors:
        say(f"It is not used: {error}")
