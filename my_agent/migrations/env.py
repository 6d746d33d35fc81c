"""Alembic's entry point: runs the scripts on the connection that `upgrade` passes."""

from alembic import context

from my_agent.database import metadata
from my_agent.migrations import VERSIONS

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSIONS,
)
context.run_migrations()
