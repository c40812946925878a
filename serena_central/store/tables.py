"""The tables of `rows.py` as SQLModel classes. Importing this costs half a second, so only `database` does, in its own
thread."""

from types import UnionType, new_class
from typing import Any, get_args, get_origin

import msgspec
from sqlalchemy import JSON, BigInteger, Column, Dialect, Index, Integer, String, TypeDecorator
from sqlmodel import Field, SQLModel

from serena_central.store.rows import TABLES, Row


class PostgresText(TypeDecorator[str]):
    """Text as SQLite has it: in the order of its code points, whatever the order of the database is."""

    impl = String(collation="C")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """PostgreSQL knows no NUL. What UTF-8 can't encode fails here, before the driver has sent half a message."""
        if value is not None:
            value.encode()
            value = value.replace("\0", "\ufffd")
        return value


_TYPES: dict[Any, Any] = {
    str: String().with_variant(PostgresText(), "postgresql"),
    int: BigInteger().with_variant(Integer(), "sqlite"),
}
"""What a column of a dialect needs so that both keep the same values in the same order."""


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
    if get_origin(of_type) in (list, dict):
        return Field(sa_column=Column(JSON, nullable=False))
    plain = next((one for one in get_args(of_type) if one is not type(None)), of_type)
    typed: dict[str, Any] = {"sa_type": _TYPES[plain]} if plain in _TYPES else {}
    if name in (kind.key or ("id",)):
        return (
            Field(default=None, primary_key=True, **typed)
            if _is_optional(of_type)
            else Field(primary_key=True, **typed)
        )
    return Field(**typed)


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
