"""The edits in a server's database, read without a server and without changing it.

Importing this costs nothing, unlike the store. Blocks; the server may use the database meanwhile.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from serena_central.core.errors import StoreError

if TYPE_CHECKING:
    from serena_central.store.rows import EditRow

BUSY_S = 5.0

MOST_EDITS = 1_000_000
"""More than are kept."""

MOST_UNDONE_AGAIN = 100
"""How often an edit may be undone and redone before that is no longer followed."""


class LoggedEdit(NamedTuple):
    """One edit; `files` are root-relative, as they are called after it. `undoes`: the edit that this one undid.
    `patches` is MessagePack in zlib, None once that is too old or was too large."""

    id: str
    at: float
    tool: str
    session: str
    client: str
    root: str
    files: list[str]
    undoes: str | None
    symbol: str
    patches: bytes | None = None


def logged(row: "EditRow", *, patches: bool = False) -> LoggedEdit:
    """An edit as the store has it; with `patches`, which may be large, only where they are wanted."""
    return LoggedEdit(
        id=row.id,
        at=row.at,
        tool=row.tool,
        session=row.session,
        client=row.client,
        root=row.project_root,
        files=_names_of(row.files),
        undoes=row.undoes,
        symbol=row.symbol,
        patches=row.patches if patches else None,
    )


def undoer_in_force(undoers: Mapping[str, Sequence[str]], edit: str, depth: int = 0) -> str:
    """What undid an edit and was not undone itself; "" for nothing. `undoers`: edit → those that undid it."""
    own = undoers.get(edit, ())
    return next((one for one in own if depth > MOST_UNDONE_AGAIN or not undoer_in_force(undoers, one, depth + 1)), "")


def read_edits(
    path: Path, url: str | None = None, *, since: float = 0.0, file: tuple[str, str] | None = None
) -> list[LoggedEdit]:
    """Those in the file `path`, or in the database at `url`, the newest first; none where there is no file yet. With
    `file`, a root and a path below it, those of that file with their patches.

    Raises:
        StoreError
    """
    if url is not None:
        return _at(path, url, since, file)
    if not path.exists():
        return []
    patches = "patches" if file else "NULL"
    query = (
        f"SELECT id, at, tool, session, client, project_root, files, undoes, symbol, {patches} FROM edit WHERE at >= ?"  # noqa: S608 - a constant
    )
    given: list[object] = [since]
    if file:
        query += " AND project_root = ? AND instr(files, ?)"
        given += [file[0], json.dumps(file[1], ensure_ascii=False)]
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            rows = connection.execute(f"{query} ORDER BY at DESC, id DESC", given).fetchall()
    except sqlite3.Error as error:
        raise StoreError(f"The edits in {path} cannot be read: {error}") from error
    return [LoggedEdit._make((*row[:6], _names(row[6]), *row[7:])) for row in rows]


def _at(path: Path, url: str, since: float, file: tuple[str, str] | None) -> list[LoggedEdit]:
    # Late: SQLAlchemy costs half a second, and most have a file.
    from serena_central.store.database import Database
    from serena_central.store.queries import Queries
    from serena_central.store.query_results import EditFilter

    root, name = file or (None, None)
    with closing(Database(path, url)) as database:
        rows = Queries(database).edits(EditFilter(since=since, project=root, file=name, limit=MOST_EDITS))
    return [logged(row, patches=file is not None) for row in rows]


def _names(files: str) -> list[str]:
    try:
        return _names_of(json.loads(files))
    except (ValueError, AttributeError):
        return []


def _names_of(files: list[dict[str, Any]]) -> list[str]:
    return [str(one.get("moved_to") or one.get("path")) for one in files]
