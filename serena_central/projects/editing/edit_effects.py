"""The effects of an edit: symbols whose bodies changed, and new errors.

Both are asked of the language server, which may be slow: neither delays an answer beyond its bound, and what is not
known by then is said. The symbols are asked for while the edit still holds its files, because the next one is planned
on them; the errors when it does not, and before it does: the next edit waits for neither.
What a server said after one edit counts as the state before the next one.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, ServerNotInstalled, Unsupported
from serena_central.core.lru import Lru
from serena_central.core.text import Text
from serena_central.editing.change import FileChange
from serena_central.editing.plan import changed_span
from serena_central.editing.transaction import Written
from serena_central.files.text import FileText
from serena_central.projects.editing.conflicts import WHOLE_FILE, BodyChange
from serena_central.projects.editing.declaration_changes import (
    Redeclared,
    all_gone,
    may_count,
    redeclared,
    renumbered,
)
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.symbol import FileSymbols, body_hashes

logger = logging.getLogger(__name__)

FOLLOWED_FILES = 8
"""Maximum of files of one edit whose symbols and errors are compared; of the others only the change is known."""

SYMBOLS_S = 1.0
"""How long an edit waits for the symbols of what it wrote, after the time that a server always takes for them."""

RENUMBERED_LISTED = 10
"""Constants with other values that are named of one file."""

DETACHED_LISTED = 5
"""Files that are named as having had other hard links."""

REMEMBERED_FILES = 256
"""Files whose errors are remembered for the next edit."""

NO_SYMBOLS = FileSymbols(())

ERROR = 1
"""LSP DiagnosticSeverity."""


class Consequences(msgspec.Struct, frozen=True, kw_only=True):
    """`bodies`: symbols that the edit touched, as far as they are known. `unknown`: files whose symbols are not.
    `errors`: those that the edit brought, by root-relative path. `redeclared`: what it did to the names that its files
    declare, by old path. `notes`: what may be missing. `untold`: why no server tells the errors of files, whatever is
    edited in them → these files."""

    bodies: list[BodyChange] = []
    unknown: list[str] = []
    errors: dict[str, list[DiagnosticView]] = {}
    redeclared: dict[str, Redeclared] = {}
    notes: list[str] = []
    untold: dict[str, list[str]] = {}


class Before(msgspec.Struct):
    """What was known about one file before it was changed."""

    symbols: FileSymbols | None
    errors: "Counter[_Key] | None"
    touched: "_Touched | None" = None
    """What a change meets of it, once that was looked at."""


class Effect(NamedTuple):
    """What became of the files of an edit, known before others go on. `bodies` and `unknown` as in `Consequences`;
    `followed` are the new paths of those whose errors are looked at, `code` counts all that could have some."""

    bodies: list[BodyChange]
    unknown: list[str]
    followed: dict[str, FileChange]
    before: dict[str, Before]
    code: int
    redeclared: dict[str, Redeclared]
    notes: list[str]
    """Sentences about constants that have other values because of their order, and about files that were detached from
    their other names."""


NO_EFFECT = Effect([], [], {}, {}, 0, {}, [])


_Key = tuple[str, str, str]
"""What two reports of one error have in common, wherever it moved: message, code, source."""


class EditEffects:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        index: SymbolIndex,
        indexer: Indexer,
        navigation: Navigation,
        languages: ProjectLanguages,
        read: Callable[[str], Awaitable[FileText]],
        *,
        diagnostics_s: float,
    ) -> None:
        """`diagnostics_s` bounds the wait for diagnostics; 0 asks for none."""
        self._root = root
        self._index = index
        self._indexer = indexer
        self._navigation = navigation
        self._languages = languages
        self._read = read
        self._diagnostics_s = diagnostics_s
        self._known_errors: Lru[tuple[str, str], Counter[_Key]] = Lru(REMEMBERED_FILES)

    async def learn_errors(self, paths: Iterable[str]) -> None:
        """Has it known which errors files have that are about to be changed, if that is known soon."""

        async def learn(path: str) -> None:
            with suppress(PathError):
                read = await self._read(path)
                if (path, read.digest) in self._known_errors:
                    return
                told = await self._errors(path)
                if told.all_errors is not None and (await self._read(path)).digest == read.digest:
                    self._remember(path, read, told.all_errors)

        if self._diagnostics_s:
            with anyio.move_on_after(self._diagnostics_s / 2):
                async with anyio.create_task_group() as tasks:
                    for path in [one for one in paths if self._languages.language_of(one)][:FOLLOWED_FILES]:
                        tasks.start_soon(learn, path)

    def before(self, changes: Sequence[FileChange]) -> dict[str, Before]:
        """What is known about files that are about to be changed, by root-relative path."""
        known: dict[str, Before] = {}
        for change in changes[:FOLLOWED_FILES]:
            path, read = self._inside(change.path), change.before
            if read is not None and self._languages.language_of(path):
                symbols = self._index.of_text(path, read.stamp)
                known[path] = Before(symbols, self._known_errors.get((path, read.digest)))
        return known

    async def look_ahead(self, changes: Sequence[FileChange], before: dict[str, Before]) -> None:
        """Does those parts of `effect` that need nothing of the disk or a server: while the disk writes. Never raises:
        a write that has begun must not end by it, and `effect` does what was not done here."""
        try:
            for change in changes[:FOLLOWED_FILES]:
                known = before.get(self._inside(change.path))
                if known is not None and change.after is not None:
                    known.touched = _Touched.by(change, known.symbols)
                    Text(change.after)  # whose lines are remembered
        except Exception:
            logger.exception("what an edit meets could not be looked at while it is written")

    async def effect(
        self, changes: Sequence[FileChange], before: dict[str, Before], outcome: Mapping[Path, Written]
    ) -> Effect:
        """What became of the files, within the bound. The tree has seen the changes; `outcome` tells the files as they
        were written."""
        written = {self._inside(one.moved_to or one.path): one for one in changes if one.after is not None}
        of_code = [path for path in written if self._languages.language_of(path)]
        followed = of_code[:FOLLOWED_FILES]
        specs = filter(None, map(self._languages.spec_for, followed))
        with anyio.move_on_after(SYMBOLS_S + max((spec.documents.symbols_after_s for spec in specs), default=0.0)):
            await self._indexer.ensure(followed)
        bodies = [
            BodyChange(path, WHOLE_FILE, one.before.digest if one.before else None, outcome[self._root / path].digest)
            for path, one in written.items()
        ]
        unknown = [path for path in written if path not in followed]
        names = {
            path: all_gone(before[path].symbols or NO_SYMBOLS)
            for one in changes
            if one.after is None and (path := self._inside(one.path)) in before
        }
        for path in followed:
            change = written[path]
            symbols = self._index.of_text(path, outcome[self._root / path].stamp)
            if symbols is None:  # the server is slow, or somebody has written or deleted the file again
                unknown.append(path)
            else:
                known = before.get(self._inside(change.path))
                bodies += _bodies(path, change, symbols, known)
                if known is not None and known.symbols is not None and change.before is not None:
                    new = Text(change.after or "")
                    names[self._inside(change.path)] = redeclared(change.before.text, known.symbols, new, symbols)
        numbered = {path: written[path] for path in of_code if self._has_numbers(path, written[path])}
        notes = await anyio.to_thread.run_sync(self._renumbered, numbered) if numbered else []
        notes += _detached([path for path in written if outcome[self._root / path].detached])
        files = {path: written[path] for path in followed}
        return Effect(bodies, unknown, files, before, len(of_code), names, notes)

    def _has_numbers(self, path: str, change: FileChange) -> bool:
        """Whether a text may have held constants whose values follow from their order."""
        return change.before is not None and may_count(
            self._languages.language_of(path) or "", change.before.text.content
        )

    def _renumbered(self, changes: Mapping[str, FileChange]) -> list[str]:
        """Runs in a thread."""
        said: list[str] = []
        for path, change in changes.items():
            language = self._languages.language_of(path) or ""
            old = change.before.text.content if change.before else ""
            if names := renumbered(language, old, change.after or ""):
                shown = ", ".join(names[:RENUMBERED_LISTED])
                more = f" and {len(names) - RENUMBERED_LISTED} more" if len(names) > RENUMBERED_LISTED else ""
                said.append(
                    f"In {path} the values of {shown}{more} are not what they were: they follow from the order. What "
                    "stores or compares them as numbers is affected."
                )
        return said

    async def consequences(self, effect: Effect, edited_again: Callable[[str], bool]) -> Consequences:
        """The errors that an edit brought, within the bound. Those of a file that is `edited_again` meanwhile would not
        be this edit's alone, and are left out."""
        news = _News({}, list(effect.notes), {}, {})
        if self._diagnostics_s:
            news.notes.extend(self._uncompared(effect))
            with anyio.move_on_after(self._diagnostics_s) as scope:
                async with anyio.create_task_group() as tasks:
                    for path, change in effect.followed.items():
                        tasks.start_soon(self._look_for_errors, path, change, effect.before, news, edited_again)
            news.notes.extend(news.of_lacking())
            if scope.cancelled_caught:
                news.notes.append(f"Diagnostics for this edit did not arrive within {self._diagnostics_s:g} s.")
            if effect.code > len(effect.followed):
                news.notes.append(
                    f"Diagnostics were checked in {len(effect.followed)} of the {effect.code} edited files."
                )
        return Consequences(
            bodies=effect.bodies,
            unknown=effect.unknown,
            errors=news.errors,
            redeclared=effect.redeclared,
            notes=news.notes,
            untold=news.untold,
        )

    def _uncompared(self, effect: Effect) -> list[str]:
        """Says of which files it is not known what the edit did to the names that they declare."""
        paths = [
            path
            for path, change in effect.followed.items()
            if change.before is not None
            and self._inside(change.path) not in effect.redeclared
            and self._languages.is_searched(path)
            and self._languages.selection.has_references(path)
        ]
        if not paths:
            return []
        where = paths[0] if len(paths) == 1 else f"{len(paths)} files"
        return [
            (
                f"Could not determine in time which names this edit changed in {where}; references to them were not "
                "checked."
            )
        ]

    async def _look_for_errors(
        self,
        path: str,
        change: FileChange,
        before: dict[str, Before],
        news: "_News",
        edited_again: Callable[[str], bool],
    ) -> None:
        if not edited_again(path):
            told = await self._errors(path)
            try:
                read = await self._read(path)
            except PathError:
                return
            if read.text.content == change.after and not edited_again(path):
                if told.all_errors is not None:
                    self._remember(path, read, told.all_errors)
                if told.is_untold:
                    news.untold.setdefault(told.lacks, []).append(path)
                elif told.lacks:
                    news.lacking.setdefault((told.errors is None, told.lacks), []).append(path)
                known = _known_errors(before, self._inside(change.path))
                news.add(path, told.errors or [], known, _lines_of(change, read))
                return
        news.notes.append(
            f"{path} was edited again immediately, so this edit's errors cannot be separated from the next one's. "
            "get_diagnostics_for_file lists all."
        )

    def _remember(self, path: str, read: FileText, found: list[DiagnosticView]) -> None:
        self._known_errors[path, read.digest] = Counter(map(_key, found))

    async def _errors(self, path: str) -> "_Told":
        if self._languages.spec_for(path) is None:
            return NEVER_TOLD
        try:
            found, lacks = await self._navigation.diagnostics(path)
        except Unsupported:
            return NEVER_TOLD
        except ServerNotInstalled as error:  # which few have for data and markup
            return _Told(None, str(error), is_untold=True) if self._languages.is_code(path) else NEVER_TOLD
        except (LanguageServerError, PathError, DeadlineExceeded) as error:
            return _Told(None, str(error))
        return _Told([view for view in found if view.diagnostic.severity == ERROR], lacks or "")

    def _inside(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


class _Told(NamedTuple):
    """What a server told of a file's errors, None for nothing; `lacks`: why that may not be all; `is_untold`: none
    will tell any until a person gets one."""

    errors: list[DiagnosticView] | None
    lacks: str = ""
    is_untold: bool = False

    @property
    def all_errors(self) -> list[DiagnosticView] | None:
        return None if self.lacks else self.errors


NEVER_TOLD = _Told(None)
"""No server reads the file, or it offers no diagnostics; or it is one for data or markup, and not there."""


class _News(NamedTuple):
    """What the followed files' errors tell."""

    errors: dict[str, list[DiagnosticView]]
    notes: list[str]
    """What may lack."""
    lacking: dict[tuple[bool, str], list[str]]
    """(Whether nothing is known of their errors, why not all is) → files."""
    untold: dict[str, list[str]]
    """As in `Consequences`."""

    def of_lacking(self) -> Iterator[str]:
        for (nothing, why), paths in self.lacking.items():
            files = ", ".join(sorted(paths))
            yield (
                f"No diagnostics for {files} after this edit: {why}"
                if nothing
                else f"Diagnostics for {files} may be incomplete: {why}"
            )

    def add(self, path: str, found: list[DiagnosticView], before: "Counter[_Key] | None", changed: range) -> None:
        """Takes those errors that were not there before. Of equal ones those in the changed lines are the new ones;
        if nothing is known of before, all in the changed lines are."""
        inside = [view for view in found if view.diagnostic.range.start.line0 in changed]
        new = inside if before is None else []
        left = Counter(before or {})
        for view in [] if before is None else sorted(found, key=inside.__contains__):
            if left[_key(view)] > 0:
                left[_key(view)] -= 1
            else:
                new.append(view)
        if new:
            self.errors[path] = new


def _detached(files: Sequence[str]) -> list[str]:
    """A sentence about files that had other names; none where there are none."""
    if not files:
        return []
    shown = ", ".join(files[:DETACHED_LISTED])
    more = f" and {len(files) - DETACHED_LISTED} more" if len(files) > DETACHED_LISTED else ""
    return [f"Other hard links to {shown}{more} keep the old text: an edit puts a new file in place of the old one."]


def _known_errors(before: Mapping[str, Before], path: str) -> "Counter[_Key] | None":
    known = before.get(path)
    return known.errors if known else None


def _lines_of(change: FileChange, read: FileText) -> range:
    """The lines that a change left in the text that it made, by their 0-based numbers."""
    old = change.before.text.content if change.before else ""
    start, _, end = changed_span(old, read.text.content)
    return range(read.text.position(start).line0, read.text.position(end).line0 + 1)


def _key(view: DiagnosticView) -> _Key:
    found = view.diagnostic
    return found.message, str(found.code), found.source or ""


class _Touched(NamedTuple):
    """What a change meets of a file as it was: name path → hash of the body; and where it is in the new text."""

    change: FileChange
    hashes: Mapping[str, str]
    start: int
    new_end: int

    @classmethod
    def by(cls, change: FileChange, symbols: FileSymbols | None) -> "_Touched":
        old = change.before.text if change.before else Text("")
        start, old_end, new_end = changed_span(old.content, change.after or "")
        hashes = _bodies_meeting(old, symbols, start, old_end) if symbols is not None else {}
        return cls(change, hashes, start, new_end)


def _bodies(path: str, change: FileChange, symbols: FileSymbols, before: Before | None) -> list[BodyChange]:
    """Symbols that a change touched, as they were and as they are."""
    touched = before.touched if before is not None else None
    if touched is None or touched.change is not change:  # a formatter has changed the file since
        touched = _Touched.by(change, before.symbols if before is not None else None)
    met = _bodies_meeting(Text(change.after or ""), symbols, touched.start, touched.new_end)
    return [BodyChange(path, name_path, touched.hashes.get(name_path), now) for name_path, now in met.items()]


def _bodies_meeting(text: Text, file: FileSymbols, start: int, end: int) -> dict[str, str]:
    """Name path → hash of the body, of symbols that reach into a stretch of the text."""
    first, last = text.position(start), text.position(end)
    return body_hashes(text, file, file.meeting(first, last))
