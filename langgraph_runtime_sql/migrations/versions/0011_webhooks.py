"""Add the outbox of webhooks."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", schema.Id(), nullable=False),
        sa.Column("run_id", schema.Id(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("message", schema.Json(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("due_at", schema.Timestamp(), nullable=False),
        sa.Column("give_up_at", schema.Timestamp(), nullable=False),
        sa.Column("claimed_until", schema.Timestamp(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
    )
    op.create_index(op.f("ix_webhooks_status_due_at"), "webhooks", ["status", "due_at"])
    op.create_index(op.f("ix_webhooks_run_id"), "webhooks", ["run_id"])
