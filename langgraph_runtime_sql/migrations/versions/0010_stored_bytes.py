"""Add how much the tenants with a limit on stored bytes store."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "stored_bytes",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("due_at", schema.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_stored_bytes")),
        sqlite_with_rowid=False,
    )
