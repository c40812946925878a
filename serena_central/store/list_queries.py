"""The named questions to the long lists, events and edits: a page of them, or what they are sorted by. Blocks, as
`queries` does."""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, String, and_, cast, exists, or_, select

from serena_central.core.decoding import from_json
from serena_central.store.query_results import (
    EVENTS_SEARCHED,
    EditBrief,
    EditFilter,
    EventBrief,
    EventFilter,
    EventPage,
)
from serena_central.store.rows import EditRow, EventRow, Row, SessionRow
from serena_central.store.tables import METADATA
from serena_central.store.total_queries import TotalQueries

AnyRow = TypeVar("AnyRow", bound=Row)

WORDS_SEARCHED = 8

_SESSION, _EDIT, _EVENT = (METADATA.tables[kind.table] for kind in (SessionRow, EditRow, EventRow))

_EVENT_BRIEF = [_EVENT.columns[name] for name in EventBrief.__struct_fields__]
_EDIT_BRIEF = [
    cast(_EDIT.columns[name], String).label(name) if name == "files" else _EDIT.columns[name]
    for name in EditBrief.__struct_fields__
]


class ListQueries(TotalQueries):
    """Every method raises StoreError when the database can't be used."""

    def events(self, wanted: EventFilter) -> EventPage:
        columns, oldest_first = _EVENT.columns, wanted.after is not None
        first, end = self._ids_of(wanted)
        part = first, end
        if wanted.words:
            part = (first, min(end, first + EVENTS_SEARCHED)) if oldest_first else _newest_part(first, end)
        chosen = _matching(select(_EVENT), wanted, *part).limit(wanted.limit + 1)
        found = self._rows(EventRow, chosen.order_by(columns.id if oldest_first else columns.id.desc()))
        page = found[: wanted.limit]
        if len(found) > wanted.limit:
            return EventPage(page, page[-1].id)
        if part == (first, end):
            return EventPage(page, None)
        if oldest_first:
            last = part[1] - 1
            at = self._first(select(columns.at).where(columns.id <= last).order_by(columns.id.desc()))
            return EventPage(page, last, at)
        at = self._first(select(columns.at).where(columns.id >= part[0]).order_by(columns.id))
        return EventPage(page, part[0], at)

    def event_briefs(self, wanted: EventFilter) -> list[EventBrief]:
        """What events are sorted by, the newest first; words are looked for in the newest events alone."""
        first, end = self._ids_of(wanted)
        part = _newest_part(first, end) if wanted.words else (first, end)
        chosen = _matching(select(*_EVENT_BRIEF), wanted, *part)
        chosen = chosen.order_by(_EVENT.columns.id.desc()).limit(wanted.limit)
        return [EventBrief(*row) for row in self._database.read_at_once([chosen])]

    def events_with_ids(self, ids: Sequence[int]) -> list[EventRow]:
        """In this order; without those that are gone."""
        found = {row.id: row for row in self._rows(EventRow, select(_EVENT).where(_EVENT.columns.id.in_(ids)))}
        return [found[one] for one in ids if one in found]

    def _ids_of(self, wanted: EventFilter) -> tuple[int, int]:
        """The first id in the range of time, and the one after the last, by which events are paged: they follow time
        but for a clock that was set."""
        columns = _EVENT.columns
        first = self._first(select(columns.id).where(columns.at >= wanted.since).order_by(columns.at))
        last = select(columns.id)
        if wanted.until is not None:
            last = last.where(columns.at < wanted.until).order_by(columns.at.desc())
        end = (self._first(last.order_by(columns.id.desc())) or 0) + 1
        end = end if wanted.before is None else min(end, wanted.before)
        first = end if first is None else first
        return (first if wanted.after is None else max(first, wanted.after + 1)), end

    def _first(self, chosen: Select[Any]) -> Any:
        return self._database.read(lambda connection: connection.execute(chosen.limit(1)).scalar())

    def events_of_kinds(self, kinds: Sequence[str], since: float, limit: int) -> list[EventRow]:
        """The newest of these kinds (`server.moved`), oldest first."""
        columns = _EVENT.columns
        chosen = select(_EVENT).where(columns.kind.in_(kinds), columns.at >= since)
        return self._rows(EventRow, chosen.order_by(columns.id.desc()).limit(limit))[::-1]

    def troubles_since(self, since: float, limit: int) -> list[EventRow]:
        """The newest warnings and errors, oldest first."""
        columns = _EVENT.columns
        chosen = select(_EVENT).where(columns.at >= since, columns.severity != "info")
        return self._rows(EventRow, chosen.order_by(columns.id.desc()).limit(limit))[::-1]

    def edits(self, wanted: EditFilter) -> list[EditRow]:
        """The newest first, or the oldest."""
        return self._rows(EditRow, _wanted(select(_EDIT), wanted))

    def edit_briefs(self, wanted: EditFilter) -> list[EditBrief]:
        """What edits are sorted by, in the order of `edits`."""
        rows = self._database.read_at_once([_wanted(select(*_EDIT_BRIEF), wanted)])
        return [EditBrief(*row[:-1], files=from_json(row[-1])) for row in rows]

    def edits_with_ids(self, ids: Sequence[str]) -> list[EditRow]:
        """In this order; without those that are gone."""
        found = {row.id: row for row in self._rows(EditRow, select(_EDIT).where(_EDIT.columns.id.in_(ids)))}
        return [found[one] for one in ids if one in found]

    def _rows(self, kind: type[AnyRow], chosen: Select[Any]) -> list[AnyRow]:
        return self._database.read(lambda connection: rows_of(kind, connection, chosen))


def rows_of(kind: type[AnyRow], connection: Connection, chosen: Select[Any]) -> list[AnyRow]:
    return [kind(**row) for row in connection.execute(chosen).mappings().all()]


def _newest_part(first: int, end: int) -> tuple[int, int]:
    """Of these ids, those in which words are looked for at once."""
    return max(first, end - EVENTS_SEARCHED), end


def _matching(chosen: Select[*tuple[Any, ...]], wanted: EventFilter, first: int, end: int) -> Select[*tuple[Any, ...]]:
    """Events with these ids, `end` not among them, that match."""
    columns = _EVENT.columns
    chosen = chosen.where(columns.id >= first, columns.id < end)
    if wanted.owner is not None:
        chosen = chosen.where(owned(columns.session, columns.at, wanted.owner))
    for name in ("session", "project", "severity"):
        value = getattr(wanted, name)
        if value is not None:
            chosen = chosen.where(columns[name] == value)
    if wanted.kind is not None and "." in wanted.kind:
        chosen = chosen.where(columns.kind == wanted.kind)
    elif wanted.kind is not None:
        # A range, since LIKE would not use the index; "/" follows "." in ASCII.
        chosen = chosen.where(columns.kind >= f"{wanted.kind}.", columns.kind < f"{wanted.kind}/")
    for word in wanted.words.split()[:WORDS_SEARCHED]:
        texts = columns.message, columns.kind, columns.server, cast(columns.data, String)
        chosen = chosen.where(or_(*(text.icontains(word, autoescape=True) for text in texts)))
    return chosen


def _wanted(chosen: Select[*tuple[Any, ...]], wanted: EditFilter) -> Select[*tuple[Any, ...]]:
    columns = _EDIT.columns
    order = (columns.at, columns.id) if wanted.oldest_first else (columns.at.desc(), columns.id.desc())
    chosen = chosen.where(columns.at >= wanted.since).order_by(*order).limit(wanted.limit)
    if wanted.owner is not None:
        chosen = chosen.where(owned(columns.session, columns.at, wanted.owner))
    if wanted.project is not None or wanted.file is not None:
        chosen = chosen.where(_placed(wanted.project, wanted.file))
    if wanted.symbol is not None:
        is_end = columns.symbol.endswith(f"/{wanted.symbol}", autoescape=True)
        chosen = chosen.where((columns.symbol == wanted.symbol) | is_end)
    if wanted.not_session is not None:
        chosen = chosen.where(columns.session != wanted.not_session)
    if wanted.call is not None:
        chosen = chosen.where(columns.call == wanted.call)
    if wanted.before is not None:
        chosen = chosen.where(columns.at < wanted.before)
    if wanted.behind is not None:
        chosen = chosen.where((following if wanted.oldest_first else preceding)(columns, wanted.behind))
    if wanted.session is not None:
        chosen = chosen.where(columns.session == wanted.session)
    return chosen


def _placed(project: str | None, file: str | None) -> ColumnElement[bool]:
    """Edits in a project; of one file in it by whichever project they were made, since its folders may be some, too."""
    root = _EDIT.columns.project_root
    if project is None or file is None:
        return root == project if file is None else _names(file)
    whole = PurePosixPath(project, file)
    return or_(*(and_(root == str(one), _names(str(whole.relative_to(one)))) for one in whole.parents))


def _names(file: str) -> ColumnElement[bool]:
    """Edits with a root-relative file: its name as JSON has it, between the quotes that end it."""
    return cast(_EDIT.columns.files, String).contains(json.dumps(file, ensure_ascii=False), autoescape=True)


def owned(session: ColumnElement[Any], at: ColumnElement[float], credential: str) -> ColumnElement[bool]:
    """What happened in a session of this credential. A session's id may have been another's before."""
    own = _SESSION.columns
    return exists().where(own.id == session, own.credential == credential, own.created_at <= at)


def preceding(columns: Any, last: tuple[float, str]) -> ColumnElement[bool]:
    """What follows an entry where the newest stand first."""
    at, name = last
    return or_(columns.at < at, and_(columns.at == at, columns.id < name))


def following(columns: Any, last: tuple[float, str]) -> ColumnElement[bool]:
    """What follows an entry where the oldest stand first."""
    at, name = last
    return or_(columns.at > at, and_(columns.at == at, columns.id > name))
