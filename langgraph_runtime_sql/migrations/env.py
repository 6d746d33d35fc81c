"""Alembic's entry point: runs the scripts on the connection that `upgrade` passes."""

from alembic import context

from langgraph_runtime_sql.database.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    on_version_apply=context.config.attributes["applied"],
)
context.run_migrations()
