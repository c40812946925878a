"""Access rules of a root: which paths may not be read, listed, named or edited.

The rules themselves are `claude_config`'s; here is what files, projects and tools ask of them.
"""

from collections.abc import Callable
from typing import NamedTuple

from serena_central.core.errors import PathDenied

Closed = Callable[[str], str | None]
"""Takes a root-relative POSIX path; a sentence on why it is closed, None where it is open. Safe from any thread."""


class Access(NamedTuple):
    """`key` is equal as long as the rules are; None in place of a question: nothing is closed."""

    key: object = None
    reading: Closed | None = None
    editing: Closed | None = None

    def hides(self, path: str) -> bool:
        """Whether a path is left out of everything that is listed, searched or indexed."""
        return self.reading is not None and self.reading(path.rstrip("/")) is not None

    def check_reading(self, path: str) -> None:
        """Raises PathDenied."""
        _check(self.reading, path)

    def check_editing(self, path: str) -> None:
        """Raises PathDenied."""
        _check(self.editing, path)


OPEN = Access()


def _check(closed: Closed | None, path: str) -> None:
    reason = closed(path) if closed is not None else None
    if reason is not None:
        raise PathDenied(reason)
