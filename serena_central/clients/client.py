"""Describes a client: where its configuration lies, in which format, and what an entry looks like.

Each client is a small module of its own with one `CLIENT`; `table.py` lists them. None of them touches a file.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import split
from typing import Literal, NamedTuple, cast
from urllib.parse import urlsplit

from serena_central.clients.forms import Entry, Form, Value, members_of
from serena_central.clients.json_form import JsonForm

Scope = Literal["user", "project"]
Transport = Literal["stdio", "http"]

JSON = JsonForm(relaxed=False)
JSON_WITH_COMMENTS = JsonForm(relaxed=True)

TOKEN_VARIABLE = "SERENA_TOKEN"  # noqa: S105  the name of a variable
"""Where a file that must not hold the token says to look for it."""


PROGRAMS = ("serena-proxy", "serena-mcp-proxy")
"""What an entry of ours starts."""

OURS = frozenset(
    {
        *("type", "command", "args"),
        *("url", "httpUrl", "serverUrl"),
        *("headers", "headersHelper", "http_headers", "env_http_headers", "bearer_token_env_var"),
    }
)
"""The keys of an entry that say how the server is reached. Others in it are their user's and stay."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Whose configuration it is about. `platform` as in `sys.platform`."""

    home: Path
    platform: str
    environment: Mapping[str, str]

    def folder(self, variable: str, otherwise: Path) -> Path:
        """The folder that a variable names, if it is set to an absolute one."""
        named = Path(self.environment.get(variable, ""))
        return named if named.is_absolute() else otherwise

    @property
    def config(self) -> Path:
        """Where command line programs keep their configuration: `~/.config`, on macOS too."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def applications(self) -> Path:
        """Where desktop programs keep theirs."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        return self.config


class Proxy(NamedTuple):
    """How a client starts `serena-proxy`: by name in a file that others share, else by its path."""

    scope: Scope
    command: str
    environment: Mapping[str, str]
    """What the proxy needs to find a server in an unusual place; empty in a file that others share."""


class Server(NamedTuple):
    """How a client reaches the server itself."""

    scope: Scope
    url: str
    token: str | None
    """None in a file that others share."""
    headers_command: str
    """A shell command that prints all headers as JSON, with a session of its own for each time it runs."""


def plain_stdio(proxy: Proxy) -> Entry:
    """The entry that most clients take."""
    entry: dict[str, object] = {"command": proxy.command, "args": []}
    return entry | ({"env": dict(proxy.environment)} if proxy.environment else {})


def headers(server: Server, *, reference: str, folder: str) -> dict[str, str]:
    """`reference` is how the client writes an environment variable, with `%s` for its name; `folder` how it writes the
    folder that it works in, or nothing."""
    token = server.token or reference % TOKEN_VARIABLE
    said = {"Authorization": f"Bearer {token}"}
    return said | ({"X-Serena-Project": folder} if folder else {})


@dataclass(frozen=True, slots=True)
class Client:
    """One client."""

    name: str
    title: str
    servers: tuple[str, ...]
    """The keys that lead to its servers."""
    user_files: Callable[[Machine], tuple[Path, ...]]
    """Where a user's configuration may lie; the first that exists counts, else the first."""
    project_files: tuple[str, ...] = ()
    """The same for one project, relative to its root; none where the client has no such thing."""
    form: Form = JSON
    stdio: Callable[[Proxy], Entry] = plain_stdio
    http: Callable[[Server], Entry] | None = None
    http_by_reference: bool = True
    """Whether `http` can do without the token: by a variable, or by the headers' command."""
    http_platforms: tuple[str, ...] = ()
    """Where `http` tells the server the project, as in `sys.platform`; empty for everywhere."""
    about: str = ""
    """What a person should know of it here; for the documentation."""
    then: str = "Restart it."
    """What a person has to do for the change to count."""


def program_of(entry: Entry) -> str | None:
    """What the entry starts, for the connection or for its headers; None for neither."""
    command: Value = entry.get("command")
    if isinstance(command, list):
        command = next(iter(cast("list[Value]", command)), None)
    if command is None and isinstance(helper := entry.get("headersHelper"), str):
        with suppress(ValueError):  # a quotation mark without its other half
            command = next((word for word in split(helper) if "=" not in word), None)
    return command if isinstance(command, str) else None


def url_of(entry: Entry) -> str | None:
    """Where the entry connects to, without a proxy."""
    return next((url for key in ("url", "httpUrl", "serverUrl") if isinstance(url := entry.get(key), str)), None)


def is_ours(value: Value) -> bool:
    """Whether an entry leads to serena-central, and not to another program of the same name."""
    entry = members_of(value)
    program = program_of(entry)
    if program is not None:
        return re.split(r"[/\\]", program)[-1].removesuffix(".exe") in PROGRAMS
    try:
        url = urlsplit(url_of(entry) or "")
    except ValueError:
        return False
    lets_in = "bearer_token_env_var" in entry or any(
        "Authorization" in members_of(entry.get(key)) for key in ("headers", "http_headers")
    )
    return lets_in and url.path.rstrip("/") == "/mcp" and url.hostname in ("127.0.0.1", "::1", "localhost")


def renewed(old: Value, new: Entry) -> Entry:
    """The entry that replaces an old one: what users added to one of ours stays."""
    if not is_ours(old):
        return new
    return {**{key: value for key, value in members_of(old).items() if key not in OURS}, **new}
