"""Long questions about a folder, as `graph` and `validate` put them: with progress, and until they are answered."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serena_central.cli.progress import Progress
from serena_central.cli.remote import Refused, Remote

TIMEOUT_S = 900.0
"""Longer than the tools' own bound: a large project's first graph takes minutes."""

UNBOUNDED_CHARS = 5_000_000

INTERRUPTED = "Interrupted. What was found is kept: run it again, and it goes on where it was."


def ask_about(folder: Path, tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """The blocks of a tool's answer about a real folder: in the project that holds it, else as a project of its own.

    Raises:
        NoServer, Refused: there is no answer.
    """
    remote = Remote(folder=folder, answer_timeout_s=TIMEOUT_S)

    def ask(**place: str) -> list[str]:
        body = {"arguments": {**arguments, **place, "max_answer_chars": UNBOUNDED_CHARS}, "progress": True}
        return remote.followed(f"/api/tools/{tool}", body, progress.says)["blocks"]

    with Progress(interrupted=INTERRUPTED) as progress:
        try:
            return ask(relative_path=str(folder))
        except Refused as error:
            if error.kind != "unknown_project":
                raise
            return ask(project=str(folder))
