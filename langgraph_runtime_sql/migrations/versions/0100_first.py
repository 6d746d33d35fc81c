"""Create the schema.

Until version 0.2.0 the schema changes in place, so this is what `database.schema` says. That release
will name the tables here, and from then on a script never changes.
"""

from alembic import op

from langgraph_runtime_sql.migrations import tables

revision = "0100"
down_revision = None


def upgrade() -> None:
    bind = op.get_bind()
    for statement in tables.creating(bind.dialect):
        bind.exec_driver_sql(statement)
