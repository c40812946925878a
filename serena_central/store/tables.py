"""The tables, with their indexes. Importing this costs half a second, so only `database` does, in its own thread.

There are no foreign keys on purpose: under overload a row may be dropped, and must not take others with it.
A change here needs a migration and a new `SCHEMA_VERSION`; tests compare the two.
"""

import re
from typing import Any

from sqlalchemy import JSON, Column, Index
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel

SCHEMA_VERSION = "0004"
"""Alembic's newest revision."""


class StoreTable(SQLModel):
    # SQLModel's own declaration of this name can't be overridden without a word to the type checker.
    @declared_attr.directive
    @classmethod
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`SymbolViewTable` is the table `symbol_view`."""
        words = re.findall("[A-Z][a-z]+", cls.__name__.removesuffix("Table"))
        return "_".join(words).lower()


class SessionTable(StoreTable, table=True):
    id: str = Field(primary_key=True)
    credential: str
    era: str
    client_name: str
    client_version: str
    created_at: float
    last_activity: float = Field(index=True)
    state: str
    shared: bool
    context: str | None
    working_folder: str | None
    explicit_id: str | None
    transport_id: str | None
    conversation_id: str | None
    project_root: str | None
    project_name: str | None
    modes: list[str] = Field(sa_column=Column(JSON, nullable=False))
    tool_call_count: int
    initialize: bytes | None
    terminated_by: str | None
    terminated_at: float | None
    error_count: int
    edit_count: int


class SymbolViewTable(StoreTable, table=True):
    session: str = Field(primary_key=True)
    project_root: str = Field(primary_key=True)
    relative_path: str = Field(primary_key=True)
    name_path: str = Field(primary_key=True)
    body_hash: str
    seen_at: float = Field(index=True)


class ToolCallTable(StoreTable, table=True):
    __table_args__ = (Index("ix_tool_call_session_at", "session", "at"),)
    id: str = Field(primary_key=True)
    at: float = Field(index=True)
    session: str
    project: str | None
    tool: str
    duration_ms: float
    outcome: str
    error: str | None
    answer_chars: int


class EditTable(StoreTable, table=True):
    __table_args__ = (
        Index("ix_edit_session_at", "session", "at"),
        Index("ix_edit_project_root_at", "project_root", "at"),
    )
    id: str = Field(primary_key=True)
    at: float = Field(index=True)
    call: str
    tool: str
    session: str
    client: str
    project_root: str
    files: list[dict[str, Any]] = Field(sa_column=Column(JSON, nullable=False))
    patches: bytes | None
    repeat: str | None
    answer: str | None
    undoes: str | None


class EventTable(StoreTable, table=True):
    # Each filter of the events page, with the order of the page.
    __table_args__ = (
        Index("ix_event_session_id", "session", "id"),
        Index("ix_event_project_id", "project", "id"),
        Index("ix_event_kind_id", "kind", "id"),
        {"sqlite_autoincrement": True},  # an id is never given twice: pages go by it
    )
    id: int | None = Field(default=None, primary_key=True)
    seq: int
    at: float = Field(index=True)
    kind: str
    severity: str
    session: str | None
    project: str | None
    server: str | None
    message: str
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class ProjectTable(StoreTable, table=True):
    root: str = Field(primary_key=True)
    name: str
    languages: list[str] = Field(sa_column=Column(JSON, nullable=False))
    added_at: float
    last_used_at: float


class ServerRunTable(StoreTable, table=True):
    id: str = Field(primary_key=True)
    server: str
    version: str
    project_root: str
    started_at: float = Field(index=True)
    ended_at: float | None
    reason: str | None
    exit_code: int | None
    calls: int
    peak_memory_mb: float


class DailyTotalTable(StoreTable, table=True):
    day: str = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    project: str = Field(primary_key=True)
    calls: int
    errors: int
    duration_ms: float
    answer_chars: int


class DurationTotalTable(StoreTable, table=True):
    since: int = Field(primary_key=True)
    tool: str = Field(primary_key=True)
    step: int = Field(primary_key=True)
    calls: int
    errors: int
    duration_ms: float
    longest_ms: float
    answer_chars: int


METADATA = SQLModel.metadata
