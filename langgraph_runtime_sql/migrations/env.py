"""Alembic's entry point: runs the scripts on the connection that `upgrade` passes."""

from alembic import context

from langgraph_runtime_sql.database.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
