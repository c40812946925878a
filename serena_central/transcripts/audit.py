"""Every row of the transcripts that does not count, and why: what `usage --audit` shows.

It reads all that there is, without the usage store: its totals are what a first run would count.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from serena_central.transcripts.kinds import other_kinds
from serena_central.transcripts.reading import merged
from serena_central.transcripts.requests import REPEATED, Dropped, Failure, Request
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in
from serena_central.transcripts.source import Source

STREAMED = "another row of an answer that is counted once"


class DroppedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that does not count. `line` is 1-based; `what` names the row that counts instead, or the fault."""

    file: str
    line: int
    reason: str
    what: str = ""


class Audit:
    """One pass over all transcripts. Once `rows` has ended, `requests` are those that count, by key, and `other_kinds`
    says for each client how many records of which kinds nothing was read from."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = roots
        self.requests: dict[int, Request] = {}
        self.rows_read = 0
        self.unreadable: list[str] = []
        self.other_kinds: dict[str, Counter[str]] = {}
        self._first: dict[int, tuple[str, int]] = {}

    def rows(self) -> Iterator[DroppedRow]:
        for found in transcripts_in(self._roots, self.unreadable.append):
            try:
                dropped = self._read(found)
                yield from _numbered(found.path, dropped)
                client = found.root.form.client
                self.other_kinds.setdefault(client, Counter()).update(other_kinds(client, Path(found.path)))
            except OSError as error:
                self.unreadable.append(f"{found.path}: {error.strerror or error}")

    def _read(self, found: FoundFile) -> list[Dropped]:
        dropped: list[Dropped] = []
        path = Path(found.path)
        with path.open("rb", buffering=0) as file:
            source = Source(path=path, root=found.root.folder, file=file)
            for one in found.root.form.read(source, dropped.append):
                if isinstance(one, Failure):
                    continue
                self.rows_read += 1
                known = self.requests.get(one.key)
                if known is None:
                    self.requests[one.key] = one
                    self._first[one.key] = found.path, source.at
                    continue
                self.requests[one.key] = merged(known, one)
                where, offset = self._first[one.key]
                if where == found.path:
                    dropped.append(Dropped(source.at, STREAMED))
                else:
                    dropped.append(Dropped(source.at, REPEATED, f"{where}, byte {offset}"))
        return dropped


def _numbered(path: str, dropped: Sequence[Dropped]) -> Iterator[DroppedRow]:
    if not dropped:
        return
    line, passed = 1, 0
    with Path(path).open("rb", buffering=0) as file:
        for one in sorted(dropped, key=lambda one: one.offset):
            while passed < one.offset:
                piece = file.read(min(one.offset - passed, 1_000_000))
                if not piece:
                    break
                passed += len(piece)
                line += piece.count(b"\n")
            yield DroppedRow(file=path, line=line, reason=one.reason, what=one.what)
