"""How the command line prints: tables for people, JSON for programs; ages and sizes in words."""

import json
import time
from collections.abc import Sequence
from typing import Any

import click


def json_option(function: Any) -> Any:
    """Adds `--json` as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """A table with columns as wide as their contents; `empty` says what to do when there is nothing."""
    if not rows:
        click.echo(empty)
        return
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[place]) for line in [list(headers), *texts]) for place in range(len(headers))]
    for line in [list(headers), *texts]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    """Names come from clients: control characters must not reach the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


def age(at: float | None) -> str:
    """How long ago a Unix time was: `12 s`, `5 min`, `3 h`, `2 d`."""
    return "-" if at is None else span(time.time() - at)


def span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def megabytes(count: int | None) -> str:
    return "-" if not count else f"{count / 1e6:.0f} MB"
