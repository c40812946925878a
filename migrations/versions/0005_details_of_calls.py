"""What each call was given and came to, for its page; the symbols of edits."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("call_detail",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("phases_ms", sa.JSON(), nullable=False),
        sa.Column("servers", sa.JSON(), nullable=False),
        sa.Column("roots", sa.JSON(), nullable=False),
        sa.Column("shortened", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_call_detail_at", "call_detail", ["at"])
    op.add_column("edit", sa.Column("symbol", sa.String(), nullable=False, server_default=""))
    op.create_index("ix_tool_call_project_at", "tool_call", ["project", "at"])
