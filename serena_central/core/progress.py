"""Progress of long work, from wherever it happens to whoever called, without a parameter through every layer.

The border of a call installs a listener for its own task and the tasks it starts; deeper layers report, and when nobody
listens that costs a lookup. Listeners are plain functions that must not block.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from serena_central.core.quoting import escaped

Listener = Callable[[str, float | None], None]
"""Called with a short sentence and the part done, 0 to 1, or None where it can't be known."""

_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


def listener() -> Listener | None:
    """Who hears what this task reports."""
    return _listener.get()


def report(message: str, part: float | None = None) -> None:
    """Tells the current call's listener, if there is one."""
    hears = _listener.get()
    if hears is not None:
        hears(escaped(message), part)


@contextmanager
def reporting_to(hears: Listener) -> Generator[None]:
    """Sends what this task reports inside the block to a listener."""
    token = _listener.set(hears)
    try:
        yield
    finally:
        _listener.reset(token)
