"""Who holds language servers, in words: what leases a server says so by a label around its work."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

BACKGROUND = "background work: the index, an analysis run or a warm-up"


class Holder(msgspec.Struct, frozen=True):
    """A lease that is held now."""

    label: str
    held_s: float


class Work:
    """What leases. Tasks that it started may outlive it, and hold servers for themselves then."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._is_over = False

    @property
    def label(self) -> str:
        return BACKGROUND if self._is_over else self._label

    def end(self) -> None:
        self._is_over = True


_current: ContextVar[Work | None] = ContextVar("lease_holder", default=None)


@contextmanager
def leasing_for(label: str) -> Generator[None]:
    """Leases taken inside are held by `label`."""
    work = Work(label)
    token = _current.set(work)
    try:
        yield
    finally:
        work.end()
        _current.reset(token)


def current() -> str:
    """Who leases here."""
    work = _current.get()
    return work.label if work is not None else BACKGROUND
