"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("daily_total",
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("day", "tool", "project")
    )
    op.create_table("edit",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("call", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("project_root", sa.String(), nullable=False),
        sa.Column("relative_path", sa.String(), nullable=False),
        sa.Column("old_hash", sa.String(), nullable=True),
        sa.Column("new_hash", sa.String(), nullable=True),
        sa.Column("patch", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_edit_at", "edit", ["at"], unique=False)
    op.create_index("ix_edit_session_at", "edit", ["session", "at"], unique=False)
    op.create_table("event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("server", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_at", "event", ["at"], unique=False)
    op.create_index("ix_event_kind_id", "event", ["kind", "id"], unique=False)
    op.create_index("ix_event_project_id", "event", ["project", "id"], unique=False)
    op.create_index("ix_event_session_id", "event", ["session", "id"], unique=False)
    op.create_table("project",
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("languages", sa.JSON(), nullable=False),
        sa.Column("added_at", sa.Float(), nullable=False),
        sa.Column("last_used_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("root")
    )
    op.create_table("server_run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("server", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("project_root", sa.String(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("peak_memory_mb", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_server_run_started_at", "server_run", ["started_at"], unique=False)
    op.create_table("session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("credential", sa.String(), nullable=False),
        sa.Column("era", sa.String(), nullable=False),
        sa.Column("client_name", sa.String(), nullable=False),
        sa.Column("client_version", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("last_activity", sa.Float(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("context", sa.String(), nullable=True),
        sa.Column("working_folder", sa.String(), nullable=True),
        sa.Column("explicit_id", sa.String(), nullable=True),
        sa.Column("transport_id", sa.String(), nullable=True),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("project_root", sa.String(), nullable=True),
        sa.Column("project_name", sa.String(), nullable=True),
        sa.Column("modes", sa.JSON(), nullable=False),
        sa.Column("tool_call_count", sa.Integer(), nullable=False),
        sa.Column("initialize", sa.LargeBinary(), nullable=True),
        sa.Column("terminated_by", sa.String(), nullable=True),
        sa.Column("terminated_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_session_last_activity", "session", ["last_activity"], unique=False)
    op.create_table("symbol_view",
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("project_root", sa.String(), nullable=False),
        sa.Column("relative_path", sa.String(), nullable=False),
        sa.Column("name_path", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("session", "project_root", "relative_path", "name_path")
    )
    op.create_index("ix_symbol_view_seen_at", "symbol_view", ["seen_at"], unique=False)
    op.create_table("tool_call",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_tool_call_at", "tool_call", ["at"], unique=False)
    op.create_index("ix_tool_call_session_at", "tool_call", ["session", "at"], unique=False)
