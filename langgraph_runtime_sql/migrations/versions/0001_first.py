"""The first schema."""

from alembic import op

from langgraph_runtime_sql.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
