"""Symbols as answers: their JSON, lists of them, how they are shortened; and what each session has seen of them.

That is kept as hashes of bodies, in memory, and written behind to the store, so that it survives a restart of the
server; what an edit depends on is written before it, and each edit is checked against it. A hash counts only if text
and symbols are of the same moment; where the symbols of a text that was shown are not known, what the session had read
of that file before counts no more.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from serena_central.core.errors import LanguageServerError, PathError, PathNotFound, StoreError, SymbolNotFound
from serena_central.core.pacing import paced
from serena_central.core.text import Range
from serena_central.files.text import FileText
from serena_central.projects.editing.conflicts import WHOLE_FILE
from serena_central.projects.editing.edits import Edited
from serena_central.projects.navigation.project_places import ReferenceTexts
from serena_central.projects.navigation.symbol_views import DiagnosticView, ReferenceView, SymbolView, view_of
from serena_central.projects.project import Project
from serena_central.sessions.session import SeenPlace, Session
from serena_central.store.rows import SymbolViewRow
from serena_central.store.store import Store
from serena_central.symbols.index import Hit, Hits
from serena_central.symbols.symbol import FileSymbols, body_hash, body_hashes, kind_name
from serena_central.tools.answer import Form, Listing, size_of

if TYPE_CHECKING:
    from serena_central.tools.context import ToolCall


logger = logging.getLogger(__name__)

VIEWS_PER_SESSION = 2000
"""Maximum of symbols remembered per session, the last seen ones: half a megabyte."""

SEVERITIES = {1: "Error", 2: "Warning", 3: "Information", 4: "Hint"}

Grouped = dict[str, dict[str, dict[str, list[dict[str, Any]]]]]
"""File → severity → name path → diagnostics."""


class SymbolViews:
    """Keeps `Session.views`. Belongs to the event loop's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def secure(self, session: Session) -> None:
        """What a session saw so far, and the session itself, survive a kill of the server from now on, unless the store
        fails."""
        if not session.secured:
            session.secured, survives = True, False
            try:
                survives = await self._store.survives_a_kill()
            finally:
                session.secured = survives and session.secured

    def secure_soon(self, session: Session) -> None:
        """Begins with what `secure` waits for."""
        if not session.secured:
            self._store.writer.hasten()

    def saw(self, session: Session, root: str, path: str, hashes: Mapping[str, str], *, in_full: bool = True) -> None:
        """A session was shown symbols of a file: name path → hash. Those whose bodies it was not shown (`in_full`) are
        remembered only if it knows nothing of them yet: it may still have an older body in mind."""
        folder, file = _file(root, path)
        # What would be forgotten at once is not written: a file may have more symbols than the writer's queue holds.
        for name_path, seen in islice(hashes.items(), max(len(hashes) - VIEWS_PER_SESSION, 0), None):
            place = SeenPlace(folder, file, name_path)
            if in_full or place not in session.views:
                self._set(session, place, seen)
        while len(session.views) > VIEWS_PER_SESSION:
            self._remove(session, next(iter(session.views)))

    def forget(self, session: Session, root: str, path: str) -> None:
        """What a session saw of a file counts no more: it was shown something newer whose symbols are not known."""
        known = _file(root, path)
        for place in [place for place in session.views if place[:2] == known]:
            self._remove(session, place)

    async def seen(self, session: Session, root: str, path: str, name_path: str) -> str | None:
        """The hash of what a session last saw of a symbol; None if it never did."""
        await self.load(session)
        return self.known(session, root, path, name_path)

    async def seen_within(self, session: Session, root: str, path: str, name_path: str) -> dict[str, str]:
        """Name path → hash of what a session last saw of a symbol, and of those in it."""
        await self.load(session)
        (asked_folder, asked_file), inside = _file(root, path), f"{name_path}/"
        return {
            name: seen
            for (folder, file, name), seen in session.views.items()
            if file == asked_file and folder == asked_folder and (name == name_path or name.startswith(inside))
        }

    def known(self, session: Session, root: str, path: str, name_path: str) -> str | None:
        """Like `seen`, for who has asked that in the same call."""
        return session.views.get(SeenPlace(*_file(root, path), name_path))

    def _set(self, session: Session, place: SeenPlace, seen: str) -> None:
        changed = session.views.get(place) != seen
        session.views[place] = seen
        session.views.move_to_end(place)
        if changed:
            session.secured = False
            self._store.writer.put(
                SymbolViewRow(
                    session=session.id,
                    project_root=place.folder,
                    relative_path=place.file,
                    name_path=place.name_path,
                    body_hash=seen,
                    seen_at=time.time(),
                )
            )

    def _remove(self, session: Session, place: SeenPlace) -> None:
        del session.views[place]
        session.secured = False
        self._store.writer.remove(SymbolViewRow, session.id, *place)

    async def load(self, session: Session) -> None:
        """Reads what an earlier run of the server wrote, unless that is done; what was seen since then is newer."""
        if not session.views_in_store:
            return
        try:
            rows = await self._store.ask(lambda queries: queries.symbol_views(session.id))
        except StoreError as error:
            logger.warning("the read history of a session is not available: %s", error, extra={"session": session.id})
            rows = []
        for row in sorted(rows, key=lambda row: row.seen_at, reverse=True):
            place = SeenPlace(*_file(row.project_root, row.relative_path), row.name_path)
            if place not in session.views:
                session.views[place] = row.body_hash
                session.views.move_to_end(place, last=False)
        session.views_in_store = False


def _file(root: str, path: str) -> tuple[str, str]:
    """A file's folder and name, the same for each project that has it."""
    folder, _, name = f"{root}/{path}".rpartition("/")
    return folder, name


SHARED_SESSION = (
    "Several clients may share this session, and what one of them read counts for all: an edit may overwrite "
    "changes that another one made since."
)


class ReadSet:
    """Of the session of one call. Paths are root-relative; hashes are those of symbols/symbol.py, by name path."""

    def __init__(self, call: "ToolCall", target: Project) -> None:
        self._call = call
        self._target = target
        self._views = call.services.views
        self._session = call.session
        self._root = str(target.root)

    # --- around an edit ------------------------------------------------------------------------------------------

    async def check(self, hit: Hit, *, within: bool = True) -> Mapping[str, str]:
        """What the session last read of a symbol, and of those in it unless not `within`: what the edit's conflict
        guard compares with.

        Raises:
            PathRefused: the file is not edited here.
        """
        self._check_editable(hit.path)
        if within:
            return await self._views.seen_within(self._session, self._root, hit.path, hit.name_path)
        seen = await self._views.seen(self._session, self._root, hit.path, hit.name_path)
        return {hit.name_path: seen} if seen is not None else {}

    async def check_file(self, path: str) -> str | None:
        """The digest of what the session last read of a whole file.

        Raises:
            PathRefused
        """
        self._check_editable(path)
        return await self._views.seen(self._session, self._root, path, WHOLE_FILE)

    def _check_editable(self, path: str) -> None:
        self._target.edits.check_editable(path)
        if self._session.shared:
            self._call.note(SHARED_SESSION)

    def record(self, edited: Edited, *, about: str | None = None) -> None:
        """Records an edit (of the symbol `about`, if it was one): what the session wrote counts as read; what
        contains it keeps its state."""
        known = [
            body
            for body in edited.consequences.bodies
            if (about is not None and (body.name_path == about or body.name_path.startswith(f"{about}/")))
            or body.before is None
            or self._views.known(self._session, self._root, body.path, body.name_path) == body.before
        ]
        for path in edited.consequences.unknown:
            self._views.forget(self._session, self._root, path)
        after = defaultdict[str, dict[str, str]](dict)
        for body in known:
            after[body.path][body.name_path] = body.after
        for path, hashes in after.items():
            self._record(path, hashes)

    # --- what was shown ------------------------------------------------------------------------------------------

    def record_bodies(self, views: Iterable[SymbolView]) -> None:
        """The session was shown these symbols' sources, as far as the views hold them."""
        for view in views:
            if view.hashes:
                self._record(view.path, view.hashes)
            if view.digest:
                self._record_lines_known(view.path, view.digest)

    async def record_names(self, path: str, shown: FileSymbols) -> None:
        """The session was shown the names of all symbols of a file."""
        if not self._unknown(path, shown.name_paths) and not self._unknown(path, [WHOLE_FILE]):
            return  # it keeps what it saw of them before
        try:
            read = await self._target.read(path)
        except PathError:  # gone since its symbols were told
            return
        symbols = self._target.symbols_in(path, read)
        if symbols is not None:
            self._record(path, body_hashes(read.text, symbols, self._unknown(path, symbols.name_paths)), in_full=False)
            self._record_lines_known(path, read.digest)

    def _unknown(self, path: str, name_paths: Sequence[str]) -> list[int]:
        """The places of name paths of which the session has seen nothing."""
        (folder, file), views = _file(self._root, path), self._session.views
        # Tuples are found as the `SeenPlace` that they equal, and made in half the time.
        return [place for place, name_path in enumerate(name_paths) if (folder, file, name_path) not in views]

    def record_references(self, references: Iterable[ReferenceView], texts: ReferenceTexts) -> None:
        """The session was shown lines of the symbols that refer to another one."""
        # One that uses another often is hashed once, and of more than are remembered the last ones.
        holders = {(one.path, one.holder.name_path): one for one in references if one.holder is not None}
        forgotten = max(len(holders) - VIEWS_PER_SESSION, 0)
        for (path, name_path), one in islice(holders.items(), forgotten, None):
            if (body := texts.body_hash(one)) is not None:
                self._record(path, {name_path: body}, in_full=False)

    def record_lines(self, path: str, read: FileText, first: int, last: int) -> None:
        """The session was shown lines of a file: symbols that lie in them as a whole, others in part."""
        symbols = self._target.symbols_in(path, read)
        if symbols is None:
            self._views.forget(self._session, self._root, path)
        else:
            shown = defaultdict[bool, dict[str, str]](dict)
            for symbol, name_path in ((symbol, symbols.name_path(at)) for at, symbol in enumerate(symbols.symbols)):
                if symbol.start_line <= last and first <= symbol.end_line:
                    whole = first <= symbol.start_line and symbol.end_line <= last
                    shown[whole][name_path] = body_hash(read.text, symbol)
            for whole, hashes in shown.items():
                self._record(path, hashes, in_full=whole)
        self._record(path, {WHOLE_FILE: read.digest})

    def _record_lines_known(self, path: str, digest: str) -> None:
        """The session was shown where symbols stand, so that it may edit the file by those lines."""
        self._record(path, {WHOLE_FILE: digest}, in_full=False)

    def _record(self, path: str, hashes: Mapping[str, str], *, in_full: bool = True) -> None:
        self._views.saw(self._session, self._root, path, hashes, in_full=in_full)


SYMBOL_CHARS = 100
"""No symbol of an answer is shorter: its keys alone are as long."""

NAME_CHARS = 4
"""Nor a name, with its quotes and comma."""

PATH_CHARS = 5
"""Nor what stands around the names of a file beside its path: `"":[]`."""

BESIDE_NAMES = 20
"""Symbols that are looked at although all can be named: for an answer in which the names turn out to be too long."""


def location(span: Range) -> dict[str, int]:
    """A definition's place in an answer: 0-based lines, 0-based start column in characters."""
    return {"start_line": span.start.line0, "end_line": span.end.line0, "start_column": span.start.column}


def as_json(view: SymbolView) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name_path": view.name_path,
        "kind": kind_name(view.kind),
        "relative_path": view.path,
        "body_location": location(view.range),
    }
    if view.body is not None:
        answer["body"] = view.body
    if view.info:
        answer["info"] = view.info
    if view.children:
        answer["children"] = _children(view.children)
    return answer


def _children(views: Sequence[SymbolView]) -> dict[str, list[dict[str, Any]]]:
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for view in views:
        child: dict[str, Any] = {"name": view.name, "body_location": location(view.range)}
        if view.children:
            child["children"] = _children(view.children)
        by_kind[kind_name(view.kind)].append(child)
    return by_kind


async def listed_symbols(
    call: "ToolCall", target: Project, hits: Sequence[Hit], *, body: bool = False, info: bool = False, depth: int = 0
) -> Listing:
    """An answer of symbols. Those that this page can't show are counted, and not looked at."""
    files = hits.per_file if isinstance(hits, Hits) else Counter(hit.path for hit in hits)
    shortest = hits.shortest_name if isinstance(hits, Hits) else 1

    async def all_named() -> list[tuple[str, str]] | None:
        room = call.page.chars - sum(map(len, files)) - PATH_CHARS * len(files)
        return None if call.page.is_asked else await _named(hits, shortest, room)

    at_least = len(hits) * (SYMBOL_CHARS + shortest) + sum(len(path) * count for path, count in files.items())
    are_too_many = at_least > call.page.chars
    named = await all_named() if are_too_many else None
    window = call.page.window(len(hits), SYMBOL_CHARS)
    if named is not None and not call.page.group:
        window = window[:BESIDE_NAMES]
    views: list[SymbolView | None] = []
    room = call.page.chars
    is_read = body or info  # what is not costs no coroutine: an answer lists hundreds
    coming = hits.since(window.start) if isinstance(hits, Hits) else islice(hits, window.start, None)
    async for hit in paced(islice(coming, len(window))):  # each may decode its file
        try:
            view = await _view(call, target, hit, body=body, info=info, depth=depth) if is_read else view_of(hit, depth)
        except (SymbolNotFound, PathNotFound):
            view = None  # it was taken out while the answer was made
        views.append(view)
        room -= SYMBOL_CHARS + len(view.path) + len(view.name_path) if view else 0
        if room < 0:
            window = window[: len(views)]
            break

    def seen(first: int, last: int) -> list[SymbolView]:
        return [view for view in views[first - window.start : last - window.start] if view is not None]

    def bare() -> list[dict[str, Any]]:
        return [as_json(view.bare) for view in views if view is not None]

    shorter: list[Form] = []
    if len(views) == len(hits):
        shorter.append(Form("without bodies, info and children", bare))
        shorter.append(
            Form("as names per file", lambda: per_file((view.path, view.name_path) for view in views if view))
        )
    elif (known := named if are_too_many else await all_named()) is not None:
        shorter.append(Form("as names per file", lambda: per_file(known)))

    return Listing(
        page=call.page,
        total=len(hits),
        window=window,
        noun="symbol",
        build=lambda first, last: [as_json(view) for view in seen(first, last)],
        narrow="Pass relative_path or a longer name path to narrow it.",
        per_file=files,
        shorter=shorter,
        brief=lambda first, last: [as_json(view.bare) for view in seen(first, last)],
        shown=(lambda first, last: ReadSet(call, target).record_bodies(seen(first, last))) if body else None,
    )


async def _named(hits: Sequence[Hit], shortest: int, room: int) -> list[tuple[str, str]] | None:
    """Path and name path of each symbol; None where these, of which none is shorter, don't fit into so many characters:
    to name thousands takes decoding all of their files."""
    room -= len(hits) * (shortest + NAME_CHARS - 1)
    named: list[tuple[str, str]] = []
    async for hit in paced(hits if room >= 0 else ()):
        named.append((hit.path, hit.name_path))
        room -= size_of(named[-1][1]) - shortest
        if room < 0:
            break
    return named if room >= 0 else None


async def _view(call: "ToolCall", target: Project, hit: Hit, *, body: bool, info: bool, depth: int) -> SymbolView:
    """The symbol, without its information where its language server can't tell it."""
    try:
        return await target.view(hit, body=body, info=info, depth=depth)
    except LanguageServerError as error:
        call.note(f"Without info: {error}")
        return await target.view(hit, body=body, depth=depth)


def per_file(entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Path → what belongs to it."""
    grouped: dict[str, list[str]] = {}
    of, belonging = None, list[str]()
    for path, entry in entries:
        if path != of:  # most come one file after the other
            of, belonging = path, grouped.setdefault(path, [])
        belonging.append(entry)
    return grouped


def grouped(found: Mapping[str, Sequence[DiagnosticView]]) -> Grouped:
    """Diagnostics by file as answers show them: by severity and symbol."""
    answer: Grouped = {}
    for path, views in found.items():
        by_severity = answer.setdefault(path, {})
        for view in sorted(views, key=lambda view: (view.diagnostic.severity, view.diagnostic.range.start)):
            severity = SEVERITIES.get(view.diagnostic.severity, "Error")
            by_severity.setdefault(severity, {}).setdefault(view.name_path or "<file>", []).append(_diagnostic(view))
    return answer


def _diagnostic(view: DiagnosticView) -> dict[str, Any]:
    found = view.diagnostic
    start, end = found.range.start, found.range.end
    answer: dict[str, Any] = {
        "message": found.message,
        "range": {
            "start": {"line": start.line0, "column": start.column},
            "end": {"line": end.line0, "column": end.column},
        },
    }
    if found.code is not None:
        answer["code"] = found.code
    if found.source is not None:
        answer["source"] = found.source
    return answer
