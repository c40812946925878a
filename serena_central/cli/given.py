"""What is given on the command line, read so that whatever it is becomes a value or an error in words."""

import json
import math
from typing import Any

import click


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
