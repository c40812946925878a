"""`serena-central languages`: what languages are known, and which language server answers for each.

`list` shows the catalogue as it is, with what was found on this machine; it asks no server and starts nothing.
"""

from pathlib import Path
from typing import Any

import click

from serena_central.cli.language_checks import doctor_command
from serena_central.cli.language_install import install_command, uninstall_command
from serena_central.cli.output import json_option, print_json, print_table
from serena_central.core.errors import ServerNotInstalled
from serena_central.core.places import Places
from serena_central.lsp.catalogue import Catalogue, ServerSpec, catalogue
from serena_central.lsp.locate import locate

FILES_CHARS = 28
"""How much of the file patterns a table shows; `--json` has all."""

OTHERS_CHARS = 26
"""How much of the alternatives' names a table shows."""


@click.group(name="languages", epilog="Example: serena-central languages install go")
def command() -> None:
    """Languages and their language servers."""


command.add_command(doctor_command)
command.add_command(install_command)
command.add_command(uninstall_command)


@command.command(name="list", epilog="Example: serena-central languages list --json")
@json_option
def list_languages(*, as_json: bool) -> None:
    """List languages: files, default server, alternatives, how to install it, and whether it is installed."""
    known = catalogue()
    places = Places.of_user()
    languages = [_described(known, name, places) for name in sorted(known.languages)]
    if as_json:
        print_json(languages)
        return
    rows = [
        [
            one["language"],
            shortened(one["patterns"], FILES_CHARS),
            one["server"] or "-",
            shortened(one["alternatives"], OTHERS_CHARS) or "-",
            one["install"][0]["via"] if one["install"] else "-",
            ("?" if known.server(one["server"]).launch.hosted else "yes") if one["found"] else "no",
        ]
        for one in languages
    ]
    print_table(["LANGUAGE", "FILES", "SERVER", "OTHERS", "GET BY", "HERE"], rows, empty="The catalogue is empty.")
    click.echo(
        f"\n{len(rows)} languages. HERE: the default server is installed on this machine; ?: what runs it is.\n"
        "`languages doctor` tries servers. Details: --json."
    )


def shortened(words: list[str], limit: int) -> str:
    """The words in a row, as many as fit, with `…` for the rest."""
    text = " ".join(words)
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + " …"


def _described(known: Catalogue, name: str, places: Places) -> dict[str, Any]:
    language = known.languages[name]
    default = known.default_server(name)
    return {
        "language": name,
        "title": language.title,
        "patterns": language.patterns,
        "server": default.name if default else None,
        "without": language.without or (default.undriven if default else ""),
        "alternatives": [server.name for server in known.servers_of(name) if server is not default],
        "install": [{"via": recipe.via, "how": recipe.text} for recipe in default.install] if default else [],
        "found": _found(default, places) if default else None,
    }


def _found(spec: ServerSpec, places: Places) -> str | None:
    """Where the server's program is, or None; one that listens somewhere was not looked for."""
    if spec.launch.connect:
        return None
    try:
        return locate(spec, Path("/"), places, untrusted=None).command[0]
    except ServerNotInstalled:
        return None
