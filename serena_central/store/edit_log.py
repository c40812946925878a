"""The edits in a server's database, read from its file without a server and without changing it.

Importing this costs nothing, unlike the store. Blocks; the server may use the file meanwhile.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import StoreError

BUSY_S = 5.0


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


def read_edits(
    path: Path, *, since: float = 0.0, ids: list[str] | None = None, file: tuple[str, str] | None = None
) -> list[LoggedEdit]:
    """The newest first; none where there is no database yet. With `file`, a root and a path below it, those of that
    file with their patches.

    Raises:
        StoreError
    """
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
    if ids is not None:
        query += f" AND id IN ({', '.join('?' * len(ids))})"
        given += ids
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            rows = connection.execute(f"{query} ORDER BY at DESC, id DESC", given).fetchall()
    except sqlite3.Error as error:
        raise StoreError(f"The edits in {path} cannot be read: {error}") from error
    return [LoggedEdit._make((*row[:6], _names(row[6]), *row[7:])) for row in rows]


def _names(files: str) -> list[str]:
    try:
        return [str(one.get("moved_to") or one.get("path")) for one in json.loads(files)]
    except (ValueError, AttributeError):
        return []
