"""Which project host of a cluster may write a root, and edits that hosts have begun."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table("hosted_root",
        sa.Column("root", TEXT, nullable=False),
        sa.Column("epoch", INTEGER, nullable=False),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("root")
    )
    op.create_table("host_edit",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("root", TEXT, nullable=False),
        sa.Column("entry", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id")
    )
    op.create_index("ix_host_edit_root", "host_edit", ["root"])
