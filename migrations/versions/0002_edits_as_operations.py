"""An edit is one row with all its files; until now none was ever written."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("edit")
    op.create_table("edit",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("call", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("client", sa.String(), nullable=False),
        sa.Column("project_root", sa.String(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("patches", sa.LargeBinary(), nullable=True),
        sa.Column("repeat", sa.String(), nullable=True),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("undoes", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_edit_at", "edit", ["at"], unique=False)
    op.create_index("ix_edit_project_root_at", "edit", ["project_root", "at"], unique=False)
    op.create_index("ix_edit_session_at", "edit", ["session", "at"], unique=False)
