"""Tasks: runs of sub-agents, with their results."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("task",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("instruction", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("runner", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("project_root", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("called_by", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("usage", sa.JSON(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("cost_source", sa.String(), nullable=False),
        sa.Column("resume_id", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("verified", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_task_at", "task", ["at"])
    op.create_index("ix_task_parent", "task", ["parent"])
