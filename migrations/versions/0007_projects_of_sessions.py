"""Sessions keep the project that they work on although they never activated it; what undid an edit is found at once."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Only activated projects were kept before.
    op.add_column("session", sa.Column("project_active", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.create_index("ix_edit_undoes", "edit", ["undoes"])
