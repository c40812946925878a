"""Alembic's entry: runs on the connection that the store hands over, inside its transaction."""

from alembic import context

from serena_central.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite can't alter most of a table in place
)
context.run_migrations()
