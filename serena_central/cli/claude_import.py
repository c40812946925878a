"""`serena-central claude import`: adds the MCP servers that other clients are configured with.

Other clients keep secrets of their user in their files. They go into the user's own settings, made private; in a
project's file, which is shared, variables stand for them.
"""

import os
import re
import sys
from collections.abc import Hashable
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click

from serena_central.claude_config.document import Document
from serena_central.claude_config.locations import PROJECT_SERVERS
from serena_central.cli.claude_edits import FORM, SERVERS, change, file_of, folder_option, planned, text_of
from serena_central.cli.output import json_option, print_json, say
from serena_central.cli.trust import project_root
from serena_central.clients.client import Client, Machine
from serena_central.clients.configured import Configured, configured
from serena_central.clients.forms import Malformed, members_of
from serena_central.clients.table import CLIENTS
from serena_central.core.masking import MASK, is_secret_name, is_secret_value, masked
from serena_central.core.words import counted

_REFERENCE = re.compile(r"(?:\w+ )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""A value that is none itself, with or without the scheme of an `Authorization` header."""

_REFERENCES = re.compile(r"(\$\{[^}]*\})")

_ASSIGNED = re.compile(r"(?P<name>[\w-]+)=(?P<value>[^\s&#]+)")
"""In an argument, or in the query of a URL."""


@click.command(
    "import",
    epilog="""\b
Examples:
  serena-central claude import --from cursor --dry-run
  serena-central mcp import --tier project
""",
)
@click.option("--from", "client", type=click.Choice([*CLIENTS]), help="One client; default: all of them.")
@click.option(
    "--tier",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="user: your settings, with all values; project: .mcp.json, with ${VARIABLES} for what may be secret.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be added.")
@folder_option
@json_option
def import_servers(*, client: str | None, tier: str, dry_run: bool, folder: Path | None, as_json: bool) -> None:
    """Add the MCP servers that other clients are configured with. Names that are there already stay as they are."""
    shared = tier == "project"
    file = project_root(folder) / PROJECT_SERVERS if shared else file_of(tier, folder)
    machine = Machine(Path.home(), sys.platform, os.environ)
    wanted = {name: _servers_of(one, machine) for name, one in CLIENTS.items() if client in (None, name)}
    merged = _Merged("", [], {}, [])

    def edit(text: str) -> str | None:
        nonlocal merged
        merged = _merged(file, text, wanted, shared=shared)
        return merged.text if merged.rows else None

    if dry_run:
        planned(file, SERVERS, edit, text_of(file))
    else:
        change(file, SERVERS, edit, private=not shared)
    rows, places = merged.rows, merged.places if shared else {}
    if as_json:
        print_json(
            {
                "file": str(file),
                "added": [] if dry_run else rows,
                "found": rows,
                "variables": places,
                "switched_off": merged.left_out,
            }
        )
        return
    for row in rows:
        say(f"{row['server']} (from {row['from']})")
        if row["unresolved"]:
            title = CLIENTS[row["from"]].title
            say(f"  {', '.join(row['unresolved'])}: only {title} knows what it stands for. Edit it.")
    for row in merged.left_out:
        say(f"{row['server']} is switched off in {CLIENTS[row['from']].title}, and is not added.")
    say(f"{file}: {counted(len(rows), 'server')} {'would be ' if dry_run else ''}added.")
    if places:
        say("This file is shared, so variables stand for what may be secret. Set them where the server is started:")
        for name, place in places.items():
            say(f"  {name}: {place}")
    if rows and shared:
        say("In arguments and URLs only known forms of secrets are found: check the file before you commit it.")


class _Merged(NamedTuple):
    """A file's new text, what was added to it, shown without secrets, and the variables that stand for them; servers
    that are switched off in a client are `left_out`."""

    text: str
    rows: list[dict[str, Any]]
    places: dict[str, str]
    left_out: list[dict[str, str]]


def _merged(file: Path, text: str, wanted: dict[str, list[Configured]], *, shared: bool) -> _Merged:
    variables, rows, left_out = _Variables(), list[dict[str, Any]](), list[dict[str, str]]()
    there = set(members_of(members_of(Document(str(file), text).value).get(SERVERS)))
    for client, servers in wanted.items():
        for server, entry, untold, is_off in servers:
            if server in there:
                continue
            if is_off:
                left_out.append({"server": server, "from": client})
                continue
            there.add(server)
            shown = variables.in_place_of_secrets(server, entry)
            text = FORM.put(text, (SERVERS, server), shown if shared else entry)
            rows.append({"server": server, "from": client, "entry": shown, "unresolved": list(untold)})
    return _Merged(text, rows, variables.places, left_out)


class _Variables:
    """Variables in place of what may be a secret: values of `env` and `headers`, of which nothing says what they are,
    and what looks like one elsewhere. Two that differ never share a name."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        """Name → whose value it stands for, in words."""
        self._values: dict[str, Hashable] = {}

    def in_place_of_secrets(self, server: str, entry: dict[str, Any]) -> dict[str, Any]:
        """A copy of an entry without its secrets."""
        made = dict(entry)
        for part, prefix in (("env", ""), ("headers", f"{server}_")):
            if part in entry:
                made[part] = {
                    name: self._whole(server, prefix + name, str(value), f"{part}.{name}")
                    for name, value in members_of(entry[part]).items()
                }
        for part in ("command", "url"):
            if part in entry:
                made[part] = self._inside(server, entry[part], part)
        if "args" in entry:
            made["args"] = [
                self._whole(server, f"{server}_SECRET", one, "args")
                if is_secret_value(before, one)
                else self._inside(server, one, "args")
                for before, one in pairwise(["", *entry["args"]])
            ]
        return made

    def _whole(self, server: str, wanted: str, value: str, place: str) -> str:
        if not value or _REFERENCE.fullmatch(value):
            return value
        return self._variable(server, wanted, value, place)

    def _inside(self, server: str, text: str, place: str) -> str:
        def assigned(match: re.Match[str]) -> str:
            if not is_secret_name(match["name"]):
                return match[0]
            return f"{match['name']}={self._whole(server, f'{server}_SECRET', match['value'], place)}"

        pieces = _REFERENCES.split(_ASSIGNED.sub(assigned, text))
        pieces[::2] = [self._unmasked(server, masked(piece), place) for piece in pieces[::2]]
        return "".join(pieces)

    def _unmasked(self, server: str, text: str, place: str) -> str:
        while MASK in text:
            text = text.replace(MASK, self._variable(server, f"{server}_SECRET", object(), place), 1)
        return text

    def _variable(self, server: str, wanted: str, value: Hashable, place: str) -> str:
        """The reference to a variable that stands for this value, under the name that is `wanted` if it can be."""
        longer = wanted if wanted.startswith(f"{server}_") else f"{server}_{wanted}"
        names = map(_name, chain([wanted, longer], (f"{longer}_{number}" for number in count(2))))
        name = next(name for name in names if self._values.setdefault(name, value) == value)
        self.places.setdefault(name, f"{place} of {server}")
        return f"${{{name}}}"


def _name(text: str) -> str:
    """As a variable's name, in capitals as is usual."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text).upper()
    return f"_{name}" if name[:1].isdigit() else name


def _servers_of(client: Client, machine: Machine) -> list[Configured]:
    """What a client's file says; with a message where it can't be read."""
    file = next((path for path in client.user_files(machine) if path.is_file()), None)
    if file is None:
        return []
    try:
        return list(configured(client, client.form.read(file.read_text(encoding="utf-8-sig"))))
    except (Malformed, OSError, UnicodeDecodeError, ValueError) as error:
        say(f"serena-central: {file} can't be read: {error}", err=True)
        return []
