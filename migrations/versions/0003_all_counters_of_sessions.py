"""A session's errors and edits survive a restart as its calls do."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("session") as table:
        table.add_column(sa.Column("error_count", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("edit_count", sa.Integer(), nullable=False, server_default="0"))
    # Rows that are written from now on always say.
    with op.batch_alter_table("session") as table:
        table.alter_column("error_count", server_default=None)
        table.alter_column("edit_count", server_default=None)
