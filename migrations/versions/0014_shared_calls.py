"""Calls that servers with one database must not make twice."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table("shared_call",
        sa.Column("repeat", TEXT, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("front", TEXT, nullable=False),
        sa.Column("edit", TEXT, nullable=False),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("repeat")
    )
    op.create_index("ix_shared_call_at", "shared_call", ["at"])
