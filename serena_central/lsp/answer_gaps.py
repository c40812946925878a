"""Records what the answer to a question may lack, where it is found out, for the caller.

It is not kept at the server, where another question could change it before the caller reads it.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[dict[str, None] | None] = ContextVar("shortfalls", default=None)


@contextmanager
def noting() -> Generator[Callable[[], str | None]]:
    """Collects what is noted inside, in the tasks that are started there too; what is given tells it, None if nothing
    was."""
    noted: dict[str, None] = {}
    token = _noted.set(noted)
    try:
        yield lambda: "; ".join(noted) or None
    finally:
        _noted.reset(token)


def note(note: str) -> None:
    """An answer that is being made may lack something."""
    noted = _noted.get()
    if noted is not None:
        noted[note] = None
