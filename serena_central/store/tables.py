"""The tables of `rows.py`, for SQLAlchemy. Importing this takes a while, so only `database` does, in its own thread."""

from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from serena_central.store.rows import TABLES, Row

METADATA = MetaData()


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


_TYPES: dict[Any, TypeEngine[Any]] = {
    str: String().with_variant(PostgresText(), "postgresql"),
    int: BigInteger().with_variant(Integer(), "sqlite"),
    float: Float(),
    bool: Boolean(),
    bytes: LargeBinary(),
    list: JSON(),
    dict: JSON(),
}
"""With what a dialect needs so that both keep the same values in the same order."""


def _make(kind: type[Row]) -> None:
    """Declares the table of one class of rows."""
    Table(
        kind.table,
        METADATA,
        *(_column(kind, field.name, field.type) for field in msgspec.structs.fields(kind)),
        *(Index(f"ix_{kind.table}_{'_'.join(columns)}", *columns) for columns in kind.indexes),
        sqlite_autoincrement=_is_given(kind),  # an id that the database gives is never given twice: pages go by it
        sqlite_with_rowid=not kind.in_order_of_key,
    )


def _column(kind: type[Row], name: str, of_type: Any) -> Column[Any]:
    is_key, is_optional = name in (kind.key or ("id",)), _is_optional(of_type)
    plain = next(one for one in get_args(of_type) if one is not type(None)) if is_optional else of_type
    return Column(name, _TYPES[get_origin(plain) or plain], primary_key=is_key, nullable=is_optional and not is_key)


def _is_given(kind: type[Row]) -> bool:
    """Whether the database gives a row its id."""
    return not kind.key and any(
        field.name == "id" and _is_optional(field.type) for field in msgspec.structs.fields(kind)
    )


def _is_optional(of_type: Any) -> bool:
    return get_origin(of_type) is UnionType and type(None) in get_args(of_type)


for _kind in TABLES:
    _make(_kind)
