"""`serena-central graph`: the dependency graph of a folder, written to a file or printed."""

from pathlib import Path
from typing import Any

import click

from serena_central.cli.progress import Progress
from serena_central.cli.remote import Remote

TIMEOUT_S = 900.0
"""Longer than the tool's own bound: a large project's first graph takes minutes."""

UNBOUNDED_CHARS = 5_000_000

INTERRUPTED = "Interrupted. What was found is kept: run it again, and it goes on where it was."


@click.command(
    epilog="Example: serena-central graph src/app --granularity folder --format markdown --out graph.md\n\n"
    "A graph that was interrupted goes on where it ended when it is asked for again."
)
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
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
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only uses of this kind, like Class; repeatable.")
@click.option("--max-nodes", type=click.IntRange(2, 2000), default=60, show_default=True, help="More are folded.")
@click.option("--out", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="A file; else printed.")
def command(
    folder: Path, *, granularity: str, form: str, kinds: tuple[str, ...], max_nodes: int, out: Path | None
) -> None:
    """Show what uses what in FOLDER: circles, layers, and what most depends on."""
    place = folder.resolve()
    arguments: dict[str, Any] = {
        "relative_path": str(place),
        "granularity": granularity,
        "format": form,
        "kinds": list(kinds),
        "max_nodes": max_nodes,
        "max_answer_chars": UNBOUNDED_CHARS,
    }
    remote = Remote(folder=place, answer_timeout_s=TIMEOUT_S)
    body = {"arguments": arguments, "progress": True}
    with Progress(interrupted=INTERRUPTED) as progress:
        blocks: list[str] = remote.followed("/api/tools/dependency_graph", body, progress.says)["blocks"]
    for remark in blocks[1:]:
        click.echo(remark, err=True)
    if out is None:
        click.echo(blocks[0], nl=False)
    else:
        out.write_text(blocks[0], encoding="utf-8")
        click.echo(f"{out} written.", err=True)
