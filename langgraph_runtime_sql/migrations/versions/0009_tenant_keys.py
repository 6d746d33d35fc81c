"""Add the tenants' wrapped data keys."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "tenant_keys",
        sa.Column("key_id", schema.Id(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("wrapped", sa.Text(), nullable=True),
        sa.Column("master", sa.Text(), nullable=True),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("erased_at", schema.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_tenant_keys")),
    )
    op.create_index(
        op.f("ix_tenant_keys_tenant_version"), "tenant_keys", ["tenant", "version"], unique=True
    )
