"""Alembic's entry: runs the migrations on the connection that `memory_core.db.schema` hands over."""

from alembic import context

from memory_core.db.tables import metadata

connection = context.config.attributes.get("connection")
if connection is None:  # --sql: print, touch nothing
    context.configure(
        dialect_name="postgresql",
        target_metadata=metadata,
        literal_binds=True,
        output_buffer=context.config.attributes["output"],
    )
else:
    context.configure(connection=connection, target_metadata=metadata)

with context.begin_transaction():
    context.run_migrations()
