"""Conflict detection: whether a symbol is still what a session saw, and who changed it if not.

What a session saw is passed as a hash of the body, which is compared here. Who changed what is remembered from the
edits since the project was opened, and of earlier ones by their journal (`blame`); what is not among them came from
outside: an editor, git. A file that was last written before that may have been changed by an edit that is longer ago.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from serena_central.core.clock import utc
from serena_central.core.errors import EditConflict
from serena_central.core.lru import Lru
from serena_central.core.text import Text
from serena_central.editing.change import Author
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.projects.editing.blame import Blame, Verdict
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import below, body_hash

CHANGES_REMEMBERED = 10_000
"""Maximum of symbols whose last author is remembered: about 3 MB."""

OUTSIDE = "something outside this server (an editor, git, another program)"

EARLIER = (
    "something outside this server (an editor, git, another program) or by an edit before the project was opened "
    "(`serena-central history` lists these)"
)


WHOLE_FILE = ""
"""Stands for the file itself where a symbol's name path stands: its hash is the content's digest."""


class BodyChange(msgspec.Struct, frozen=True):
    """What an edit made of one symbol's body. `before` is None for a symbol that was not there."""

    path: str
    name_path: str
    before: str | None
    after: str


class _Change(NamedTuple):
    after: str
    author: Author
    at: float


class ConflictGuard:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._changes: Lru[tuple[str, str], _Change] = Lru(CHANGES_REMEMBERED)
        self._since = time.time()

    def note(self, author: Author, at: float, changes: list[BodyChange]) -> None:
        """Remembers who changed symbols."""
        for change in changes:
            self._changes[change.path, change.name_path] = _Change(change.after, author, at)

    def conflict(
        self,
        author: Author,
        hit: Hit,
        text: Text,
        stamp: Stamp,
        *,
        seen: Mapping[str, str],
        blame: Blame | None = None,
    ) -> EditConflict | None:
        """The conflict of an author's edit of a symbol with what its session saw of it and of symbols in it: the hashes
        `seen`, by name path. A symbol that the session never saw has no conflict: the session relied on no version of
        it. `blame` finds what the session knows because it wrote it itself."""
        for place in below(hit.file, hit.place) if seen else ():
            name_path, symbol = hit.file.name_path(place), hit.file.symbols[place]
            if name_path in seen and (current := body_hash(text, symbol)) != seen[name_path]:
                verdict = blame.of_symbol(name_path, symbol.range, seen[name_path]) if blame else None
                if verdict is None or not verdict.known:
                    by, at = self._who((hit.path, name_path), current, stamp, verdict, author)
                    return EditConflict(name_path, hit.path, by, at, text.slice(symbol.range))
        return None

    def file_conflict(
        self, author: Author, path: str, read: FileText, seen: str | None, *, blame: Blame | None = None
    ) -> EditConflict | None:
        """The same for a whole file, of which somebody saw the content with the digest `seen`."""
        if seen is None or seen == read.digest:
            return None
        verdict = blame.of_file(seen) if blame else None
        if verdict is not None and verdict.known:
            return None
        by, at = self._who((path, WHOLE_FILE), read.digest, read.stamp, verdict, author)
        return EditConflict("The text", path, by, at, None)

    def _who(
        self, place: tuple[str, str], current: str, stamp: Stamp, verdict: Verdict | None, asking: Author
    ) -> tuple[str, str]:
        """Who brought something to what it is now, as the one who is `asking` may know, and when."""
        if verdict is not None and verdict.by is not None:
            return _named(verdict.by.author, asking), utc(verdict.by.at)
        change = self._changes.get(place)
        if change is not None and change.after == current:
            return _named(change.author, asking), utc(change.at)
        at = stamp.mtime_ns / 1e9
        return EARLIER if at < self._since else OUTSIDE, utc(at)


def _named(author: Author, asking: Author) -> str:
    """Who made an edit, for who asks: of another user of a team not more than that."""
    if asking.owner and asking.owner != author.owner:
        return f"another user ({author.client})"
    return f"session {author.session} ({author.client})"
