"""The tables of `rows.py` as SQLModel classes. Importing this costs half a second, so only `database` does, in its own
thread."""

from types import UnionType, new_class
from typing import Any, get_args, get_origin

import msgspec
from sqlalchemy import JSON, Column, Index
from sqlmodel import Field, SQLModel

from serena_central.store.rows import TABLES, Row

SCHEMA_VERSION = "0009"
"""Alembic's newest revision."""


def _make(kind: type[Row]) -> None:
    """Declares the table of one class of rows in SQLModel's metadata."""
    fields = msgspec.structs.fields(kind)
    body: dict[str, Any] = {
        "__module__": __name__,
        "__tablename__": kind.table,
        "__annotations__": {field.name: field.type for field in fields},
        # An id that the database gives is never given twice: pages go by it.
        "__table_args__": (
            *(Index(f"ix_{kind.table}_{'_'.join(columns)}", *columns) for columns in kind.indexes),
            {"sqlite_autoincrement": _is_given(kind), "sqlite_with_rowid": not kind.in_order_of_key},
        ),
        **{field.name: _column(kind, field.name, field.type) for field in fields},
    }
    new_class(kind.__name__.replace("Row", "Table"), (SQLModel,), {"table": True}, lambda space: space.update(body))


def _column(kind: type[Row], name: str, of_type: Any) -> Any:
    if name in (kind.key or ("id",)):
        return Field(default=None, primary_key=True) if _is_optional(of_type) else Field(primary_key=True)
    if get_origin(of_type) in (list, dict):
        return Field(sa_column=Column(JSON, nullable=False))
    return Field()


def _is_given(kind: type[Row]) -> bool:
    """Whether the database gives a row its id."""
    return not kind.key and any(
        field.name == "id" and _is_optional(field.type) for field in msgspec.structs.fields(kind)
    )


def _is_optional(of_type: Any) -> bool:
    return get_origin(of_type) is UnionType and type(None) in get_args(of_type)


for _kind in TABLES:
    _make(_kind)

METADATA = SQLModel.metadata
