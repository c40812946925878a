"""Alembic's entry: runs on the connection that the store hands over, inside its transaction."""

from alembic import context

from serena_central.store.tables import METADATA


def as_in_sqlite(connection):
    """Whole numbers of 64 bits and texts in the order of their code points, whatever a migration's types say."""
    columns = connection.exec_driver_sql(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name != 'alembic_version' "
        "AND (data_type = 'integer' OR data_type = 'character varying' AND collation_name IS DISTINCT FROM 'C')"
    )
    for table, column, kind in columns.all():
        wanted = "BIGINT" if kind == "integer" else 'VARCHAR COLLATE "C"'
        connection.exec_driver_sql(f'ALTER TABLE "{table}" ALTER COLUMN "{column}" TYPE {wanted}')


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite can't alter most of a table in place
)
context.run_migrations()
if context.config.attributes["connection"].dialect.name == "postgresql":
    as_in_sqlite(context.config.attributes["connection"])
