"""Sessions whose SessionStart hooks have run, and whose SessionEnd hooks are still to run.

Kept in a file of the server's home: a restart starts no session, and ends none.
"""

import logging
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.files.atomic import write_whole

logger = logging.getLogger(__name__)

MOST_KEPT = 1000
"""Sessions; of more the oldest end without their hooks."""


class BegunSession(msgspec.Struct):
    """`roots`: where it has worked, in this order → whether its client runs the hooks of that root itself. `ran`: names
    of the SessionStart hooks that have run; those of the user's settings apply to every root, and run once."""

    client: str
    roots: dict[str, bool] = {}
    ran: list[str] = []


class BegunSessions:
    """By session id. Belongs to the event loop's thread. Blocks for a small file when one changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = _read(file)

    def __contains__(self, session: str) -> bool:
        return session in self._begun

    def ids(self) -> list[str]:
        """The oldest first."""
        return list(self._begun)

    def has(self, session: str, root: str) -> bool:
        """Whether a session has begun in a root."""
        known = self._begun.get(session)
        return known is not None and root in known.roots

    def begin(self, session: str, client: str, root: str, *, by_client: bool) -> BegunSession:
        """Notes that a session works in a root. What is added to its `ran` before the next `save` is kept."""
        known = self._begun.setdefault(session, BegunSession(client))
        known.roots[root] = by_client
        while len(self._begun) > MOST_KEPT:
            del self._begun[next(iter(self._begun))]
        return known

    def end(self, session: str) -> BegunSession | None:
        """Takes a session out; None for one that has not begun, or has ended."""
        known = self._begun.pop(session, None)
        if known is not None:
            self.save()
        return known

    def save(self) -> None:
        try:
            if self._begun:
                write_whole(self._file, msgspec.json.encode(self._begun))
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("begun sessions could not be saved, and begin again after a restart: %s", error)


def _read(file: Path) -> dict[str, BegunSession]:
    try:
        return from_json(file.read_bytes(), dict[str, BegunSession])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        logger.warning("%s can't be read, so that no session counts as begun: %s", file, error)
        return {}
