"""Add the requests that clients may repeat."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("run_id", schema.Id(), nullable=True),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"])
