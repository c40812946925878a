"""`serena-central languages install` and `uninstall`: progress on stderr, the outcome on stdout."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import click
import msgspec

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.output import json_option, print_json, print_table
from serena_central.core.errors import ConfigError, LanguageServerError
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.installers.install import Installed, install, uninstall
from serena_central.lsp.installers.install_methods import INSTALL_METHODS
from serena_central.lsp.installers.staging import Tell

CORE = ("ty", "typescript", "gopls", "rust-analyzer", "clangd")
"""The servers of the languages that most projects are written in."""

AT_ONCE = 3
"""Downloads go on while something compiles."""


class Failure(msgspec.Struct, frozen=True):
    """A server that could not be installed."""

    server: str
    error: str


@click.command(
    name="install",
    epilog="Examples: serena-central languages install go rust; serena-central languages install --all-core",
)
@click.argument("names", nargs=-1)
@click.option("--all-core", is_flag=True, help=f"Install {', '.join(CORE)}.")
@click.option(
    "--via",
    "methods",
    multiple=True,
    type=click.Choice(sorted(INSTALL_METHODS)),
    help="Only with this install method (repeatable).",
)
@json_option
def install_command(*, names: tuple[str, ...], all_core: bool, methods: tuple[str, ...], as_json: bool) -> None:
    """Install language servers, named by themselves or by their languages."""
    specs = _named([*(CORE if all_core else ()), *names])
    if not specs:
        raise click.UsageError("Name a language or a language server; `serena-central languages list` shows them.")
    places = Places.of_user()
    places.create()
    outcomes = anyio.run(_install_all, specs, places, methods)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if as_json:
        print_json([_shown(outcome) for outcome in outcomes])
    else:
        _print_outcomes([outcome for outcome in outcomes if isinstance(outcome, Installed)], failed)
    if failed:
        raise Unsuccessful


@click.command(name="uninstall", epilog="Example: serena-central languages uninstall gopls")
@click.argument("names", nargs=-1, required=True)
@json_option
def uninstall_command(*, names: tuple[str, ...], as_json: bool) -> None:
    """Remove language servers that `install` got, in all versions."""
    removed: list[dict[str, Any]] = []
    for spec in _named(names):
        versions = anyio.run(partial(uninstall, spec, Places.of_user(), tell=_teller(spec)))
        removed.append({"server": spec.name, "versions": versions})
        if not as_json:
            click.echo(f"{spec.name}: removed {', '.join(versions)}" if versions else f"{spec.name}: was not installed")
    if as_json:
        print_json(removed)


def _named(names: Sequence[str]) -> list[ServerSpec]:
    """Servers by name, else the default servers of languages; each once.

    Raises:
        ConfigError
    """
    known = catalogue()
    specs: dict[str, ServerSpec] = {}
    for name in names:
        spec = known.servers.get(name) or known.default_server(name)
        if spec is None:
            raise ConfigError(name, known.languages[known.language(name)].without)
        specs[spec.name] = spec
    return list(specs.values())


async def _install_all(
    specs: Sequence[ServerSpec], places: Places, methods: Sequence[str]
) -> list[Installed | Failure]:
    """Several at once; one that fails leaves the others alone."""
    outcomes: dict[str, Installed | Failure] = {}
    at_once = anyio.CapacityLimiter(AT_ONCE)

    async def one(spec: ServerSpec) -> None:
        async with at_once:
            try:
                outcomes[spec.name] = await install(spec, places, methods=methods, tell=_teller(spec))
            except LanguageServerError as error:
                outcomes[spec.name] = Failure(spec.name, str(error))

    async with anyio.create_task_group() as tasks:
        for spec in specs:
            tasks.start_soon(one, spec)
    return [outcomes[spec.name] for spec in specs]


def _teller(spec: ServerSpec) -> Tell:
    def tell(line: str) -> None:
        click.echo(f"{spec.name}: {line}", err=True)

    return tell


def _shown(outcome: Installed | Failure) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(outcome)
    return {"ok": isinstance(outcome, Installed), **shown}


def _print_outcomes(installed: Sequence[Installed], failed: Sequence[Failure]) -> None:
    if installed:
        rows = [
            [
                one.server,
                one.version or "-",
                one.via,
                f"{one.seconds:.0f} s" if one.fresh else "already installed",
                one.folder or "-",
            ]
            for one in installed
        ]
        print_table(["SERVER", "VERSION", "BY", "TOOK", "FOLDER"], rows, empty="")
    for one in failed:
        click.echo(f"{one.server}: FAILED: {one.error}", err=True)
