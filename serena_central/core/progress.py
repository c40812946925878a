"""Reports the progress of long work to the caller, without a parameter through every layer.

The entry point of a call installs a listener for its own task and the tasks it starts; deeper layers report, and when
nobody listens that costs a lookup. Listeners are plain functions that must not block.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType

from serena_central.core.quoting import escaped

Listener = Callable[[str, float | None], None]
"""Called with a short sentence and the part done, 0 to 1, or None where it can't be known."""

_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


def listener() -> Listener | None:
    """The listener of this task."""
    return _listener.get()


def report(message: str, part: float | None = None) -> None:
    """Tells the current call's listener, if there is one."""
    hears = _listener.get()
    if hears is not None:
        hears(escaped(message), part)


Wait = Callable[[], tuple[str, float | None]]
"""Says what is waited for, and how much of it is done, 0 to 1, or None where it can't be known."""

_waits: ContextVar[list[Wait] | None] = ContextVar("waits", default=None)


@contextmanager
def noting_waits() -> Generator[list[Wait]]:
    """What this task, and those that it starts, wait for at any moment inside the block: the outermost first."""
    waits: list[Wait] = []
    token = _waits.set(waits)
    try:
        yield waits
    finally:
        _waits.reset(token)


@contextmanager
def waiting_for(wait: Wait) -> Generator[None]:
    """Publishes what the block waits for; without a listener it costs one lookup."""
    waits = _waits.get()
    if waits is None:
        yield
        return
    waits.append(wait)
    try:
        yield
    finally:
        waits.remove(wait)


class reporting_to:  # noqa: N801 - used like a function
    """Sends what this task reports inside the block to a listener."""

    __slots__ = ("_hears", "_token")

    def __init__(self, hears: Listener) -> None:
        self._hears = hears

    def __enter__(self) -> None:
        self._token = _listener.set(self._hears)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _listener.reset(self._token)


_noted: ContextVar[list[str] | None] = ContextVar("unanswered", default=None)


class noting_unanswered:  # noqa: N801 - used like a function
    """Collects what is noted inside, in the tasks that are started there too."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        noted: list[str] = []
        self._token = _noted.set(noted)
        return noted

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _noted.reset(self._token)


def note_unanswered(what: str) -> None:
    """This task is cancelled while it waits for something; a clause without its end."""
    noted = _noted.get()
    if noted is not None:
        noted.append(what)
