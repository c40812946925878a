"""Records what a call was waiting for, for the error when its time runs out."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_noted: ContextVar[list[str] | None] = ContextVar("unanswered", default=None)


@contextmanager
def noting() -> Generator[list[str]]:
    """Collects what is noted inside, in the tasks that are started there too."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note(what: str) -> None:
    """This task is cancelled while it waits for something; a clause without its end."""
    noted = _noted.get()
    if noted is not None:
        noted.append(what)
