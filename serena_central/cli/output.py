"""How the command line prints: tables for people, JSON for programs; ages, sizes and users in words."""

import getpass
import json
import os
import time
from collections.abc import Sequence
from typing import Any

import click

from serena_central.core.quoting import escaped, escaped_lines, visible_json


def json_option(function: Any) -> Any:
    """Adds `--json` as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def user_label() -> str:
    """This user, as records name who did something: the account, or the uid where it has no name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}" if os.name == "posix" else "a user without a name"


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Prints lines that hold what others wrote: what is not visible is escaped, so that nothing steers the terminal."""
    click.echo(escaped_lines(text), err=err, nl=nl)


def print_json(value: Any) -> None:
    say(json_text(value, indent=2))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON for people and programs: what is not visible stands as JSON's own escapes."""
    return visible_json(json.dumps(value, ensure_ascii=False, indent=indent))


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
    """Names come from clients and repositories: control characters must not reach the terminal."""
    return escaped(text)


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
