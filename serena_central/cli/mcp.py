"""`serena-central mcp`: the MCP servers of all configuration files, which of them may be used, and what runs of them.

What the files say needs no running server; processes, tools and calls do.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from serena_central.claude_config.effective import load
from serena_central.claude_config.sources import servers_of
from serena_central.cli import mcp_edits as edits
from serena_central.cli.claude_import import import_servers
from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import Finite, GivenPath, json_given
from serena_central.cli.output import age, json_option, json_text, megabytes, print_json, print_table, say
from serena_central.cli.remote import NoServer, Refused, Remote, named
from serena_central.cli.trust import project_root
from serena_central.config.load import load_server_config
from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import Places
from serena_central.hub.names import server_prefix
from serena_central.projects.root_settings import RootSettings

LOG_LINES = 50
POLL_S = 0.3

LOGIN_S = 300.0

START_S = 60.0
"""`npx` and `uvx` may fetch a server's program first."""

UPSTREAMS = "/api/v1/upstreams"

LOST = ("starting", "paused", "failed")
"""States of a server that some call needs, and that does not run."""

in_folder = click.option(
    "--project", "folder", type=GivenPath(path_type=Path), help="Of this folder; else of the one around."
)


@click.group(epilog="Examples: serena-central mcp list    serena-central mcp add files -- npx -y some-server ~/notes")
def command() -> None:
    """MCP servers of the configuration: list, add and remove them; see, restart and call those that run."""


for one in (edits.add, edits.add_json, edits.remove, edits.enable, edits.disable, import_servers):
    command.add_command(one)


@command.command(
    "list", epilog="Examples: serena-central mcp list --project ~/src/app    serena-central mcp list --tools"
)
@in_folder
@click.option("--tools", is_flag=True, help="List the tools of those that may be used. Needs a running server.")
@json_option
def list_servers(*, folder: Path | None, tools: bool, as_json: bool) -> None:
    """List the servers by name: source, state, and why. Variables are shown as they are written."""
    root = project_root(folder)
    if tools:
        _list_tools(root, as_json=as_json)
        return
    trusted = RootSettings(load_server_config({}), Places.of_user()).trust.is_trusted(root)
    found = servers_of(load(root), trusted=trusted)
    found = found._replace(found=[edits.unless_ourselves(one) for one in found.found])
    lost = _lost(root) if any(not one.why for one in found.found) else {}
    if as_json:
        print_json(
            {
                "servers": [
                    {
                        "name": one.name,
                        "source": str(one.source),
                        "state": str(one.state),
                        "why": one.why or lost.get(one.name, ""),
                        "transport": one.kind,
                        "target": one.target,
                        "file": one.place.file,
                        "line": one.place.line,
                    }
                    for one in found.found
                ],
                "problems": [str(one) for one in found.errors()],
            }
        )
        return
    rows = [
        (one.name, one.source, one.state, one.kind, one.target, one.place, one.why or lost.get(one.name, ""))
        for one in found.found
    ]
    headers = ["NAME", "SOURCE", "STATE", "TRANSPORT", "TARGET", "FILE", "WHY"]
    print_table(headers, rows, empty="No MCP servers are configured.")
    for problem in found.errors():
        say(f"serena-central: {problem}", err=True)


def _lost(root: Path) -> dict[str, str]:
    """Name → why a server does not run that is to run, as the running server of this user knows it."""
    with suppress(NoServer, Refused):
        found = Remote(folder=root).get(UPSTREAMS, project=str(root))["upstreams"]
        return {one["name"]: f"{one['state']}: {one['why']}" for one in found if one["why"] and one["state"] in LOST}
    return {}


def _list_tools(root: Path, *, as_json: bool) -> None:
    found = _with_tools(Remote(folder=root), root)
    lacking = {one["name"]: _states(one["runs"]) for one in found if not one["tools"]}
    if as_json:
        print_json(
            {
                "servers": [
                    {"name": one["name"], "tools": one["tools"], "why": lacking.get(one["name"], "")} for one in found
                ]
            }
        )
        return
    rows = [
        (one["name"], tool["name"], tool["description"].strip().partition("\n")[0])
        for one in found
        for tool in one["tools"]
    ]
    print_table(
        ["SERVER", "TOOL", "DESCRIPTION"],
        rows,
        empty="No tools are known." if found else "No tools: no MCP server of this project can be used.",
    )
    for name, why in lacking.items():
        say(f"serena-central: {name}: {why}", err=True)


def _with_tools(remote: Remote, root: Path) -> list[dict[str, Any]]:
    """The servers with their tools. Those that start now are waited for, since only a running server tells them."""
    names = sorted({one["name"] for one in remote.get(UPSTREAMS, project=str(root))["upstreams"]})
    until, told = time.monotonic() + START_S, False
    while True:
        found = [remote.get(named(UPSTREAMS, name), project=str(root)) for name in names]
        starting = [one["name"] for one in found if not one["tools"] and _starts(one["runs"])]
        if not starting or time.monotonic() >= until:
            return found
        if not told:
            told = True
            say(f"serena-central: waiting for {', '.join(starting)} to start (at most {START_S:.0f} s)", err=True)
        time.sleep(POLL_S)


def _starts(runs: Sequence[Mapping[str, Any]]) -> bool:
    return any(run["state"] == "starting" for run in runs)


def _states(runs: Sequence[Mapping[str, Any]]) -> str:
    """Why a server has no tools."""
    return "; ".join(f"{run['state']}{': ' if run['why'] else ''}{run['why']}" for run in runs)


@command.command(epilog="Example: serena-central mcp get github")
@click.argument("name")
@in_folder
@json_option
def get(name: str, *, folder: Path | None, as_json: bool) -> None:
    """Show one server: what runs, what it has cost, and its tools."""
    root = project_root(folder)
    found = Remote(folder=root).get(named(UPSTREAMS, name), project=str(root))
    if as_json:
        print_json(found)
        return
    for run in found["runs"]:
        facts = {
            "state": f"{run['state']}{' (' + run['why'] + ')' if run['why'] else ''}",
            "starts": run["target"],
            "from": f"{run['place']} ({run['source']})",
            "shared": run["sharing"] + (f", for {run['scope']}" if run["scope"] else ""),
            "server": " ".join(filter(None, (run["server"], run["version"]))) or "not started yet",
            "protocol": run["protocol"] or "–",
            "process": f"{run['pid']}, {megabytes(run['memory_bytes'])}" if run["pid"] else "none",
            "used": age(run["last_used_at"]),
            "calls": f"{run['calls']}, {run['errors']} failed",
        }
        for what, value in facts.items():
            say(f"{what:10}{value}")
        say("")
    for tool in found["tools"]:
        say(f"{tool['offered_as']}: {tool['description'].strip().partition(chr(10))[0]}")


@command.command(epilog="Example: serena-central mcp restart github")
@click.argument("name")
@json_option
def restart(name: str, *, as_json: bool) -> None:
    """End what runs of a server, and forget that it failed. It starts with the next call."""
    _end(name, "restart", as_json=as_json)


@command.command(epilog="Example: serena-central mcp stop github")
@click.argument("name")
@json_option
def stop(name: str, *, as_json: bool) -> None:
    """End what runs of a server. It starts with the next call; `disable` keeps it from that."""
    _end(name, "stop", as_json=as_json)


def _end(name: str, what: str, *, as_json: bool) -> None:
    answer = Remote().post(f"{named(UPSTREAMS, name)}/{what}")
    if as_json:
        print_json(answer)
        return
    ended = f"{answer['ended']} ended" if answer["ended"] else "nothing ran"
    say(f"{name}: {ended}. The next call starts it.")


@command.command(epilog="Example: serena-central mcp login sentry")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Print the address to open, and start no browser.")
@click.option(
    "--timeout", "timeout_s", type=Finite(0), default=LOGIN_S, show_default=True, help="Seconds to wait for the login."
)
@in_folder
@json_option
def login(name: str, *, no_browser: bool, timeout_s: float, folder: Path | None, as_json: bool) -> None:
    """Log in at a remote server that wants it (OAuth), in a browser on this machine."""
    from serena_central.cli.mcp_login import log_in

    log_in(name, *edits.remote_server(name, folder), browser=not no_browser, timeout_s=timeout_s, as_json=as_json)
    with suppress(NoServer, Refused):
        Remote().post(f"{named(UPSTREAMS, name)}/restart")


@command.command(epilog="Example: serena-central mcp logout sentry")
@click.argument("name")
@in_folder
@json_option
def logout(name: str, *, folder: Path | None, as_json: bool) -> None:
    """Forget the login at a remote server."""
    from serena_central.cli.mcp_login import log_out

    log_out(name, edits.remote_server(name, folder)[0], as_json=as_json)
    with suppress(NoServer, Refused):
        Remote().post(f"{named(UPSTREAMS, name)}/restart")


@command.command(epilog="Examples: serena-central mcp logs github    serena-central mcp logs github -f")
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@click.option("-n", "count", type=click.IntRange(0), default=LOG_LINES, show_default=True, help="Newest lines to show.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def logs(name: str, *, follow: bool, count: int, as_json: bool) -> None:
    """Show what was sent to a server, what it sent, and its stderr; secrets are masked."""
    file = Places.of_user().wire_log(name)
    if not file.exists() and not follow:
        raise SerenaCentralError(f"There is no log of {name} ({file}): it was not started yet.")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    place = file.stat().st_size if file.exists() else 0
    for line in lines[len(lines) - count if count < len(lines) else 0 :]:
        _show_line(line, as_json=as_json)
    while follow:
        time.sleep(POLL_S)
        size = file.stat().st_size if file.exists() else 0
        if size == place:
            continue
        with file.open("rb") as opened:
            opened.seek(place if size > place else 0)  # a smaller one is a new file
            added = opened.read()
            place = opened.tell()
        for line in added.decode(errors="replace").splitlines():
            _show_line(line, as_json=as_json)


def _show_line(line: str, *, as_json: bool) -> None:
    if as_json:
        at, _, rest = line.partition(" ")
        direction, _, text = rest.partition(" ")
        line = json_text({"time": at, "direction": direction, "text": text})
    say(line)


@command.command(epilog="Example: serena-central mcp call files read_file --arg path=/tmp/notes.txt")
@click.argument("server")
@click.argument("tool")
@click.option("--arg", "given", multiple=True, metavar="NAME=VALUE", help="An argument; VALUE is JSON, or else text.")
@click.option("--arguments", default="{}", help="All arguments, a JSON object; --arg counts over it.")
@in_folder
@json_option
def call(server: str, tool: str, *, given: Sequence[str], arguments: str, folder: Path | None, as_json: bool) -> None:
    """Call a tool of a server, as an agent would: permissions and hooks of the configuration count."""
    root = project_root(folder)
    remote = Remote(folder=root)
    found = remote.get(named(UPSTREAMS, server), project=str(root))
    tools = found["tools"]
    chosen = next((one for one in tools if tool in (one["tool"], one["name"])), None)
    if chosen is None:
        if tools:
            names = ", ".join(one["name"] for one in tools)
            raise click.BadParameter(f"{server} has no tool {tool!r}. It has {names}.")
        name = server_prefix(server) + tool  # the call starts it, or says why it can't be started
    else:
        name = chosen["offered_as"]
    answer = remote.post(named("/api/v1/tools", name), {"arguments": _arguments(arguments, given)})
    if as_json:
        print_json(answer)
    else:
        for block in answer["blocks"]:
            say(block)
    if answer.get("failed"):  # a server older than this command does not say it
        raise Unsuccessful


def _arguments(whole: str, given: Sequence[str]) -> dict[str, Any]:
    try:
        found: Any = json_given(whole)
    except ValueError as error:
        raise click.BadParameter(f"--arguments is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.BadParameter("--arguments must be a JSON object.")
    result: dict[str, Any] = {**found}
    for one in given:
        name, separator, value = one.partition("=")
        if not separator:
            raise click.BadParameter(f"--arg {one!r} needs the form NAME=VALUE.")
        try:
            result[name] = json_given(value)
        except ValueError:
            result[name] = value
    return result
