"""What a start needs of the SQLite file of an earlier run, read by `sqlite3` alone.

The import of SQLAlchemy takes longer than all else before the first answer. Every function blocks, and returns None for
a file that only `Database` can open: of another schema, corrupt, or locked.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar, get_origin

import msgspec

from serena_central.core.decoding import from_json
from serena_central.store.query_results import EditAnswer
from serena_central.store.rows import SCHEMA_VERSION, EditRow, Row

AnyRow = TypeVar("AnyRow", bound=Row)

BUSY_TIMEOUT_S = 2.0

_SCHEMA = "SELECT version_num FROM alembic_version"

IDS_ASKED = 500
"""SQLite takes only so many values in one statement."""


def saved_schema(path: Path) -> str | None:
    """The version of the file's tables."""
    try:
        with closing(_opened(path)) as file:
            (found,) = file.execute(_SCHEMA).fetchone() or (None,)
            return None if found is None else str(found)
    except (sqlite3.Error, OSError):
        return None


def saved_rows(path: Path, kind: type[AnyRow], since: tuple[str, float] | None = None) -> list[AnyRow] | None:
    """The rows of a table, or those with at least that value in that column."""
    fields = msgspec.structs.fields(kind)
    condition, values = ("", ()) if since is None else (f"WHERE {since[0]} >= ?", since[1:])
    found = _selected(path, kind, [field.name for field in fields], [(condition, values)])
    if found is None:
        return None
    return [
        kind(**{field.name: _value(field.type, value) for field, value in zip(fields, row, strict=True)})
        for row in found
    ]


def saved_answers(path: Path, edits: Sequence[str]) -> dict[str, EditAnswer] | None:
    """The answers to the calls that made these edits, by id, of those that are on record."""
    parts = [edits[start : start + IDS_ASKED] for start in range(0, len(edits), IDS_ASKED)]
    conditions = [(f"WHERE id IN ({', '.join('?' * len(part))})", part) for part in parts]
    found = _selected(path, EditRow, ["id", "at", "repeat", "answer"], conditions)
    if found is None:
        return None
    return {edit: EditAnswer(at=at, repeat=repeat, answer=answer) for edit, at, repeat, answer in found}


def _selected(
    path: Path, kind: type[Row], columns: Sequence[str], conditions: Sequence[tuple[str, Sequence[Any]]]
) -> list[tuple[Any, ...]] | None:
    if not path.exists():
        return []
    try:
        with closing(_opened(path)) as file:
            if file.execute(_SCHEMA).fetchone() != (SCHEMA_VERSION,):
                return None
            listed = ", ".join(f'"{name}"' for name in columns)  # our own names, as all else but the values
            query = f"SELECT {listed} FROM {kind.table}"  # noqa: S608
            return [row for condition, values in conditions for row in file.execute(f"{query} {condition}", values)]
    except (sqlite3.Error, OSError):
        return None


def _opened(path: Path) -> sqlite3.Connection:
    # Not read-only: what a killed server left in the log of the file could not be read then.
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S)


def _value(of_type: Any, value: Any) -> Any:
    """As SQLAlchemy reads a column."""
    if get_origin(of_type) in (list, dict):
        return from_json(value)
    return bool(value) if of_type is bool else value
