"""`serena-proxy`: the command line, and the parts of the proxy."""

import argparse
import json
import os
import socket
import sys
import time
from typing import Any, NoReturn

from serena_central.proxy.caller import Caller, Options, identity_of
from serena_central.proxy.event_loop import Loop
from serena_central.proxy.lifetime import end_on_signals, end_with_parent
from serena_central.proxy.link import Link, target_of
from serena_central.proxy.pipes import Input, Output
from serena_central.proxy.starting import Starter
from serena_central.proxy.stdio_proxy import StdioProxy
from serena_central.standalone.exit_codes import NO_SERVER
from serena_central.standalone.home import Home, Unusable, read_token, user_home
from serena_central.standalone.private import is_loose, restrict_umask
from serena_central.standalone.proof import Unproven, prove
from serena_central.standalone.streams import open_missing_streams

DESCRIPTION = """\
Connects an MCP client over stdio to this user's serena-central server, and starts the server
if none is running. Each process has its own session."""

EPILOG = """\
examples:
  serena-proxy                                     this user's server, started if needed
  serena-proxy --no-start --project ~/src/app      for this project, and only if a server is running
  serena-proxy --url http://127.0.0.1:9000/mcp --token-file ~/box.token    another server, for example through a tunnel
  serena-proxy --print-config                      prints the entry for a client's configuration

environment:
  SERENA_CENTRAL_HOME     the server's folder, if not the usual one
  CLAUDE_PROJECT_DIR, CLAUDE_CODE_SESSION_ID     set by Claude Code: the project's folder, the conversation's id"""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

CLIENTS_URL = "CLAUDE_CODE_MCP_SERVER_URL"
"""By this variable Claude Code says which server it asks headers for."""

PROOF_S = 5.0


def parser(program: str) -> argparse.ArgumentParser:
    """What every way of starting a proxy understands."""
    made = argparse.ArgumentParser(
        prog=program,
        description=DESCRIPTION,
        epilog=EPILOG.replace("serena-proxy", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--project", metavar="DIR", help="the folder you work in (default: the current one)")
    made.add_argument("--context", metavar="NAME", help="context, such as ide or desktop-app")
    made.add_argument("--mode", metavar="NAME", action="append", default=[], help="an initial mode; repeatable")
    made.add_argument("--url", help="the server's MCP endpoint, if it is not this user's own")
    made.add_argument(
        "--token-file", metavar="FILE", help="its token file (default: this user's own, for loopback only)"
    )
    made.add_argument("--no-start", action="store_true", help="don't start a server if none is running")
    made.add_argument("--print-config", action="store_true", help="print a client's configuration and exit")
    made.add_argument(
        "--print-headers",
        action="store_true",
        help="print headers as JSON for a client that connects directly, and exit",
    )
    return made


def main() -> None:
    """The console script."""
    open_missing_streams()
    made = parser("serena-proxy")
    asked = made.parse_args()
    if asked.url:
        try:
            target_of(asked.url)
        except ValueError as error:
            made.error(str(error))
    if asked.print_config:
        print_config("serena_central.proxy", sys.argv[1:])
        return
    if asked.print_headers:
        print_headers(asked)
        return
    proxy_stdio(asked)


def print_headers(asked: argparse.Namespace) -> None:
    """The headers that a client sends with each request if it needs no proxy; the session is a new one each time. They
    are given for a server that proves itself alone: another program may listen where it did."""
    home = _home()
    asked.url = asked.url or os.environ.get(CLIENTS_URL)
    try:
        is_far = bool(asked.url) and target_of(asked.url).host not in LOOPBACK
        token = read_token(_token_file(asked, home) or "")
    except (Unusable, ValueError) as error:
        sys.exit(f"serena-proxy: {error}")
    if token is None:
        if is_far:
            sys.exit(f"serena-proxy: the token goes to {asked.url} only if --token-file names it.")
        _exit_without_server("there is no token yet, because no server has run")
    _prove(asked.url, home, token)
    options = options_of(asked)
    if not asked.project and _is_of_claude(options.folder):
        from serena_central.proxy.ancestors import nearest_other_folder

        options = options._replace(folder=_project_or_none(nearest_other_folder(options.folder) or ""))
    said = {name: value.decode("utf-8", "surrogateescape") for name, value in identity_of(options).items()}
    if not options.folder.isascii():  # clients send headers as Latin-1, or refuse to
        from pathlib import Path

        said["x-serena-project"] = Path(options.folder).as_uri()
    print(json.dumps({"authorization": f"Bearer {token}", **said}))


def _prove(url: str | None, home: Home, token: str) -> None:
    """Ends the process where no server is, or one that is not this user's. A certificate is proof enough."""
    announced = home.announcement()
    try:
        target = target_of(url or (announced.url if announced else ""))
    except ValueError:
        _exit_without_server("no server is running")
    if target.secure:
        return
    try:
        with socket.create_connection((target.host, target.port), timeout=PROOF_S) as connection:
            until, prefix = time.monotonic() + PROOF_S, target.path.removesuffix("/mcp")
            prove(connection, token, target.authority, deadline=until, prefix=prefix)
    except Unproven as error:
        sys.exit(f"serena-proxy: {error}")
    except OSError as error:
        _exit_without_server(f"no server answers at {target.authority} ({error})")


def _exit_without_server(why: str) -> NoReturn:
    print(f"serena-proxy: {why}. `serena-central serve` starts one.", file=sys.stderr)
    sys.exit(NO_SERVER)


def print_config(module: str, arguments: list[str]) -> None:
    """The entry that most clients take, with the arguments that were given."""
    kept = [argument for argument in arguments if argument != "--print-config"]
    entry: dict[str, Any] = {"command": sys.executable, "args": ["-I", "-m", module, *kept]}
    if os.environ.get("SERENA_CENTRAL_HOME"):  # the client may be started without it
        entry["env"] = {"SERENA_CENTRAL_HOME": _home().folder}
    print(json.dumps({"mcpServers": {"serena": entry}}, indent=2))


def proxy_stdio(asked: argparse.Namespace) -> None:
    """Proxies stdin and stdout until the client goes."""
    parent = os.getppid()
    restrict_umask()
    home, loop = _home(), Loop()
    _close(home)
    starter = None if asked.no_start or asked.url else Starter(loop, home)
    link = Link(loop, home, url=asked.url, token_file=_token_file(asked, home), starter=starter)
    caller = Caller(link, options_of(asked))
    proxy = StdioProxy(loop, link, caller, Input(loop, 0), Output(loop, 1))
    end_on_signals(loop, proxy.end, starter.reap if starter else _nothing)
    end_with_parent(loop, proxy.end, parent)
    _report_older_server(home)
    try:
        loop.run(proxy.run())
    finally:
        _leave_blocking()


def _home() -> Home:
    """Ends the process where there is no place for one."""
    try:
        return user_home()
    except Unusable as error:
        sys.exit(f"serena-proxy: {error}")


def _close(home: Home) -> None:
    """The first process that finds the folder accessible to others makes it private."""
    if is_loose(home.folder):
        try:
            home.create()
        except OSError as error:
            sys.exit(f"serena-proxy: {error}")


def options_of(asked: argparse.Namespace) -> Options:
    """What is known about the client, by flags first and by what it sets for its children second."""
    try:
        folder = asked.project or os.environ.get("CLAUDE_PROJECT_DIR") or _open_folder() or os.getcwd()
        folder = os.path.abspath(os.path.expanduser(folder))
    except FileNotFoundError:  # the client's folder has been deleted
        folder = ""
    if not asked.project:
        folder = _project_or_none(folder)
    return Options(
        folder=folder,
        context=asked.context,
        modes=tuple(asked.mode),
        conversation=os.environ.get("CLAUDE_CODE_SESSION_ID"),
        hops=os.environ.get("SERENA_CENTRAL_HOPS", ""),
    )


def _project_or_none(folder: str) -> str:
    """A client on the desktop starts its programs at home or in `/`: then the server asks it for its roots."""
    return "" if folder in ("", os.path.expanduser("~"), os.path.dirname(folder)) else folder


def _is_of_claude(folder: str) -> bool:
    """Whether this is Claude Code's own folder, in which it runs a headers' command wherever its user works."""
    own = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    return os.path.realpath(folder) == os.path.realpath(own)


def _open_folder() -> str | None:
    """The first folder that Cursor has open."""
    return os.environ.get("WORKSPACE_FOLDER_PATHS", "").split(",")[0] or None


def _token_file(asked: argparse.Namespace, home: Home) -> str | None:
    """The user's own token goes to no other machine unless its file was named."""
    if asked.token_file:
        return os.path.expanduser(asked.token_file)
    return home.token_file if not asked.url or target_of(asked.url).host in LOOPBACK else None


def _report_older_server(home: Home) -> None:
    said = home.announcement()
    if said is None:
        return
    ours = installed_version()
    if ours and said.version and _numbers(said.version) < _numbers(ours):
        print(
            f"serena-proxy: the running server has version {said.version}, this is {ours}. "
            "`serena-central stop` stops it; the next message starts the newer one, and sessions are kept.",
            file=sys.stderr,
        )


def installed_version() -> str:
    """Our version, found by its folder's name: `importlib.metadata` takes longer to import than all of the proxy."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("serena_central-") and name.endswith(".dist-info"):
                return name[len("serena_central-") : -len(".dist-info")]
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("+")[0].split("."))


def _nothing() -> None:
    """No server was started here."""


def _leave_blocking() -> None:
    """As they were: who shares our stdin and stdout should not find them changed."""
    if sys.platform == "win32":
        return
    for descriptor in (0, 1):
        try:
            os.set_blocking(descriptor, True)
        except OSError:
            continue
