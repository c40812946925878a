"""What is given on the command line, read so that whatever it is becomes a value or an error in words."""

import json
import math
from pathlib import Path
from typing import Any

import click

from serena_central.core.paths import expanded
from serena_central.files.mounts import check_answers


def json_given(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, or is nested more deeply than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class Finite(click.FloatRange):
    """A number that can be computed with: bounds alone let NaN pass."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class GivenPath(click.Path):
    """A path that can be looked at: on a file system whose server is away, each look would wait for that."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        check_is_reachable(Path(value))
        return super().convert(value, param, ctx)


def check_is_reachable(path: Path) -> None:
    """Raises FileSystemAway for a path, relative to the current folder, that nobody can look at now."""
    check_answers(str(expanded(path).absolute()))
