"""PostgreSQL keeps whole numbers and the order of texts as SQLite does: 64 bits, by code points."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    bind = op.get_bind()
    if bind.dialect.name != "postgresql":
        return
    inspector = sa.inspect(bind)
    for table in sorted(set(inspector.get_table_names()) - {"alembic_version"}):
        for column in inspector.get_columns(table):
            if isinstance(column["type"], sa.Integer):
                op.alter_column(table, column["name"], type_=sa.BigInteger())
            elif isinstance(column["type"], sa.String):
                op.alter_column(table, column["name"], type_=sa.String(collation="C"))
    op.execute("ALTER SEQUENCE event_id_seq AS bigint")
