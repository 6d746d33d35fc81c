"""Store which tokens and users are refused."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "revocations",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("token_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("expires_at", schema.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_revocations")),
    )
    op.create_index(op.f("ix_revocations_expires_at"), "revocations", ["expires_at"])
