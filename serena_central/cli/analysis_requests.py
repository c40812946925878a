"""Runs long analysis requests for `graph` and `validate`: with progress, and until they are answered."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from serena_central.cli.given import Finite
from serena_central.cli.progress import Progress
from serena_central.cli.remote import Refused, Remote

TIMEOUT_S = 900.0
"""Longer than the tools' own bound: a large project's first graph takes minutes."""

UNBOUNDED_CHARS = 5_000_000

INTERRUPTED = "Interrupted: fetching the result so far. Press Ctrl-C again to stop; the result is kept either way."

SO_FAR_S = 1.0
"""How long is looked further after an interruption."""

seconds_option = click.option(
    "--seconds",
    type=Finite(1, 590),
    default=50.0,
    show_default=True,
    help="Show the result so far after this time; the next run resumes there.",
)


def ask_about(folder: Path, tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """The blocks of a tool's answer about a real folder: in the project that holds it, else as a project of its own.

    Where the arguments bound the `seconds`, Ctrl-C asks for what was found until then.

    Raises:
        NoServer, Refused: there is no answer.
    """
    remote = Remote(folder=folder, answer_timeout_s=TIMEOUT_S)

    def ask(**place: str) -> list[str]:
        body = {"arguments": {**arguments, **place, "max_answer_chars": UNBOUNDED_CHARS}, "progress": True}
        return remote.followed(f"/api/v1/tools/{tool}", body, progress.says)["blocks"]

    try:
        with Progress(interrupted=INTERRUPTED if "seconds" in arguments else "") as progress:
            try:
                return ask(relative_path=str(folder))
            except Refused as error:
                if error.kind not in ("unknown_project", "path_ignored"):
                    raise
                return ask(project=str(folder))
    except KeyboardInterrupt:
        if arguments.get("seconds", SO_FAR_S) <= SO_FAR_S:
            raise
        return ask_about(folder, tool, {**arguments, "seconds": SO_FAR_S})
