"""Calls are totalled by the day, too, and totals are kept in the order in which they are read: by project and tool."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COLUMNS = "span, project, tool, since, step, calls, errors, duration_ms, longest_ms, answer_chars"


def upgrade() -> None:
    op.rename_table("call_total", "old_call_total")
    op.create_table("call_total",
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("longest_ms", sa.Float(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("span", "project", "tool", "since", "step"),
        sqlite_with_rowid=False
    )
    op.execute(
        f"INSERT INTO call_total ({COLUMNS}) SELECT {COLUMNS} FROM old_call_total "
        "ORDER BY span, project, tool, since, step"
    )
    op.execute(
        f"INSERT INTO call_total ({COLUMNS}) "
        "SELECT 86400, project, tool, since - since % 86400, step, sum(calls), sum(errors), sum(duration_ms), "
        "max(longest_ms), sum(answer_chars) FROM old_call_total WHERE span = 21600 "
        "GROUP BY project, tool, since - since % 86400, step"
    )
    op.drop_table("old_call_total")
