"""`serena-central graph`: the dependency graph of a folder, written to a file or printed."""

import json
from pathlib import Path

import click

from serena_central.cli.analysis_requests import ask_about, seconds_option
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, say
from serena_central.standalone.private import as_user


@click.command(
    epilog="Example: serena-central graph src/app --granularity folder --format markdown --out graph.md\n\n"
    "Ctrl-C shows the result so far; the next run resumes there."
)
@click.argument("folder", default=".", type=GivenPath(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--granularity", type=click.Choice(["file", "folder", "module", "symbol"]), default="file", show_default=True
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "mermaid", "dot", "json", "svg"]),
    default="markdown",
    show_default=True,
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only references to symbols of this kind, such as Class; repeatable.",
)
@click.option(
    "--max-nodes", type=click.IntRange(2, 2000), default=60, show_default=True, help="Larger graphs are folded."
)
@seconds_option
@click.option(
    "--out",
    type=GivenPath(dir_okay=False, writable=True, path_type=Path),
    help="Write to this file instead of stdout.",
)
@json_option
def command(
    folder: Path,
    *,
    granularity: str,
    form: str,
    kinds: tuple[str, ...],
    max_nodes: int,
    seconds: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Show what uses what in FOLDER: cycles, layers, and what most depends on."""
    if as_json and (form not in ("markdown", "json") or out is not None):
        raise click.UsageError("--json prints the graph as JSON. Omit --format and --out.")
    if as_json:
        form = "json"
    arguments = {"granularity": granularity, "format": form, "kinds": list(kinds), "max_nodes": max_nodes}
    blocks = ask_about(folder.resolve(), "dependency_graph", {**arguments, "seconds": seconds})
    if as_json:
        notes = [line for block in blocks[1:] for line in block.splitlines()]
        print_json({"graph": json.loads(blocks[0]), "notes": notes})
        return
    for note in blocks[1:]:
        say(note, err=True)
    if out is None:
        say(blocks[0], nl=False)
    else:
        with as_user():
            out.write_text(blocks[0], encoding="utf-8")
        click.echo(f"Wrote {out}", err=True)
