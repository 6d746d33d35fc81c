"""Add the place of a thread's long values, which its row leaves out."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("threads", sa.Column("long_values", schema.Json(), nullable=True))


def downgrade() -> None:
    op.drop_column("threads", "long_values")
