"""Shows the server's progress on long work on stderr: one line that is overwritten, or few lines without a terminal."""

import shutil
import sys
import time
from types import TracebackType

import click

from serena_central.cli.output import printable, span

EVERY_S = 5.0
"""Between two lines in a file or pipe about how far a step is; a new step is always told."""


class Progress:
    """A context manager: what stands on the terminal goes with it."""

    def __init__(self, *, interrupted: str = "") -> None:
        """`interrupted`: the message after Ctrl-C."""
        self._interrupted = interrupted
        self._last = ""
        self._watched = sys.stderr.isatty()
        self._began = self._told = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def says(self, message: str, part: float | None) -> None:
        """Shows what the server says; `part` tells how much of a step is done, 0 to 1, or None."""
        now = time.monotonic()
        if self._watched:
            width = shutil.get_terminal_size().columns
            text = f"{printable(message)} ({span(now - self._began)})"
            click.echo(f"\r{text[: width - 1]}\033[K", err=True, nl=False)
        elif message != self._last and (part is None or now - self._told >= EVERY_S):
            self._told, self._last = now, message
            click.echo(printable(message), err=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watched:
            click.echo("\r\033[K", err=True, nl=False)
        if kind is KeyboardInterrupt and self._interrupted:
            click.echo(self._interrupted, err=True)
