"""Plans: waves of tasks, with their state."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table("plan",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("project_root", TEXT, nullable=False),
        sa.Column("file", TEXT, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("called_by", TEXT, nullable=False),
        sa.Column("says", TEXT, nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("waves", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_plan_at", "plan", ["at"])
