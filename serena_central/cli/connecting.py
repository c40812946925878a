"""Shared parts of `connect` and `disconnect`: which file of which client, and this machine's entries."""

import difflib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import click

from serena_central.access.token import obtain_token, read_token
from serena_central.cli.given import GivenPath, check_is_reachable
from serena_central.cli.remote import NoServer, Refused, Remote
from serena_central.clients.change import Backups, Change, Unusable, planned_and_made
from serena_central.clients.client import Client, Machine, Proxy, Scope, Server, Transport
from serena_central.clients.forms import Entry, Keys
from serena_central.config.load import load_server_config
from serena_central.core.errors import ConfigError, SerenaCentralError
from serena_central.core.masking import masked
from serena_central.core.places import HOME_VARIABLE, Places
from serena_central.core.quoting import quoted
from serena_central.standalone.home import Home

NAME = "serena"
"""Our entry's name in every client."""

PROXY = "serena-proxy"

ANSWERS_WITHIN_S = 5.0
"""A server that takes longer to say that it is there is not called running."""

SHOWN_TOKEN = "<token>"  # noqa: S105  what stands for one


class CantConnect(SerenaCentralError):
    """A client or its file that can't be changed as asked."""


def scope_options(function: Any) -> Any:
    """`--scope`, `--project`, `--dry-run`, as `scope`, `project`, `dry_run`."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would change without changing anything."),
        click.option(
            "--project",
            type=GivenPath(exists=True, file_okay=False, path_type=Path),
            help="The project of --scope project (default: the one around the current folder).",
        ),
        click.option(
            "--scope",
            type=click.Choice(["user", "project"]),
            default="user",
            show_default=True,
            help="The user's configuration, or the project's, which can be shared.",
        ),
    ):
        function = option(function)
    return function


class ClientNames(click.Choice[str]):
    """Names of clients; one that is unknown is answered with those that are alike."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = [str(name) for name in self.choices]
        if value not in names:
            self._refuse(str(value), names, param, ctx)
        return str(value)

    def _refuse(
        self, value: str, names: list[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> NoReturn:
        asked = value.lower()
        alike = [name for name in names if asked and (name.startswith(asked) or asked.startswith(name))]
        alike = alike or difflib.get_close_matches(asked, names)
        meant = f" Did you mean {' or '.join(alike)}?" if alike else ""
        self.fail(f"{quoted(value)} is not a client.{meant} Clients: {', '.join(names)}.", param, ctx)


def clients_argument(names: Iterable[str], *, required: bool) -> Any:
    return click.argument("clients", nargs=-1, required=required, type=ClientNames(list(names)), metavar="CLIENT…")


def keys_of(client: Client) -> Keys:
    return (*client.servers, NAME)


def project_root(named: Path | None) -> Path:
    """The folder named, else the repository around the current one, else that itself."""
    here = (named or Path.cwd()).absolute()
    check_is_reachable(here)
    if named is not None:
        return here
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


@dataclass(frozen=True)
class Here:
    """This machine and its user, as entries need to know them."""

    machine: Machine
    places: Places

    @classmethod
    def now(cls) -> "Here":
        return cls(Machine(Path.home(), sys.platform, os.environ), Places.of_user())

    @property
    def backups(self) -> Backups:
        return Backups(self.places.home / "backups")

    def file_of(self, client: Client, scope: Scope, project: Path | None) -> Path:
        """Where the client's configuration is, or is to be.

        Raises:
            UsageError
        """
        if scope == "user":
            candidates = client.user_files(self.machine)
        elif (root := project_root(project)) == self.machine.home:
            raise click.UsageError(f"{root} is your home folder, not a project. Name one with --project.")
        else:
            candidates = tuple(root / name for name in client.project_files)
        if not candidates:
            raise click.UsageError(f"{client.title} has no project configuration. Omit --scope project.")
        return next((file for file in candidates if file.exists()), candidates[0])

    @cached_property
    def url(self) -> str:
        """Where the server is, or will be once it runs.

        Raises:
            ConfigError
        """
        if (running := Home(str(self.places.home)).announcement()) is not None:
            return running.url
        settings = load_server_config({}).value
        if settings.central_server_port == 0:
            raise ConfigError(
                "central_server_port", "is 0, so the URL changes at each start; choose a fixed port for --http"
            )
        host = "127.0.0.1" if settings.central_server_host in ("0.0.0.0", "::") else settings.central_server_host  # noqa: S104  compared
        return f"http://{f'[{host}]' if ':' in host else host}:{settings.central_server_port}/mcp"

    @cached_property
    def token(self) -> str | None:
        """The token that clients send; None where there is none yet."""
        try:
            return read_token(self.places.token_file).header().removeprefix("Bearer ")
        except FileNotFoundError:
            return None

    def diff(self, change: Change) -> str:
        """A change as `diff -u` shows it, without our token, and without secrets of the entries around ours."""
        return masked(change.diff({self.token: SHOWN_TOKEN} if self.token else {}))

    def _minted(self) -> str:
        self.places.create()
        return obtain_token(self.places.token_file).header().removeprefix("Bearer ")

    def proxy(self, scope: Scope) -> Proxy:
        """How clients start serena-proxy.

        Raises:
            CantConnect
        """
        return Proxy(scope, self.program(scope), self._environment(scope))

    def entry(self, client: Client, scope: Scope, transport: Transport, *, dry_run: bool) -> Entry:
        """Our entry for that client; what is only shown makes no token.

        Raises:
            UsageError, ConfigError, CantConnect
        """
        if transport == "stdio":
            return client.stdio(self.proxy(scope))
        if client.http is None:
            raise click.UsageError(f"{client.title} only supports stdio servers. Omit --http.")
        if client.http_platforms and self.machine.platform not in client.http_platforms:
            raise click.UsageError(
                f"Over HTTP {client.title} can't tell the server which project it works in on this system. Omit --http."
            )
        if scope == "project" and not client.http_by_reference:
            raise click.UsageError(
                f"{client.title} can't read the token from elsewhere, and a project's file must not contain it. "
                "Omit --http."
            )
        url = self.url
        token = (self.token or (SHOWN_TOKEN if dry_run else self._minted())) if scope == "user" else None
        return client.http(Server(scope, url, token, self._headers_command(scope)))

    def program(self, scope: Scope) -> str:
        """`serena-proxy`: beside the Python that runs this; by name where others share the file.

        Raises:
            CantConnect
        """
        if scope == "project":
            return PROXY
        beside = Path(sys.executable).with_name(PROXY + (".exe" if self.machine.platform == "win32" else ""))
        found = str(beside) if beside.exists() else shutil.which(PROXY)
        if found is None:
            raise CantConnect(f"{PROXY} is neither next to {sys.executable} nor on PATH. Reinstall serena-central.")
        return found

    def _environment(self, scope: Scope) -> dict[str, str]:
        """A client on the desktop doesn't see what is set in a terminal."""
        return {HOME_VARIABLE: str(self.places.home)} if scope == "user" and os.environ.get(HOME_VARIABLE) else {}

    def _headers_command(self, scope: Scope) -> str:
        settings = (f"{name}={shlex.quote(value)}" for name, value in self._environment(scope).items())
        return " ".join([*settings, shlex.quote(self.program(scope)), "--print-headers"])


def server_runs(places: Places) -> bool:
    """Whether this user's server answers now."""
    try:
        Remote(places, answer_timeout_s=ANSWERS_WITHIN_S).get("/health")
    except (NoServer, Refused):
        return False
    return True


def carry_out(planned: Change, plan: Callable[[], Change], here: Here, *, dry_run: bool) -> tuple[Change, Path | None]:
    """Makes a change by a fresh plan, since the file may have been written meanwhile, unless it is only asked for; the
    change, and the backup.

    Raises:
        CantConnect
    """
    if dry_run:
        return planned, None
    try:
        return planned_and_made(planned.file, plan, here.backups)
    except Unusable as error:
        raise CantConnect(str(error)) from error
