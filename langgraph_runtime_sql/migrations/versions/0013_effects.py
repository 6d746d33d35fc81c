"""Add the effects that nodes must not repeat."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "effects",
        sa.Column("effect_id", schema.Id(), nullable=False),
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("run_id", schema.Id(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result", schema.Json(), nullable=True),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("updated_at", schema.Timestamp(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("effect_id", name=op.f("pk_effects")),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_effects_thread_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_effects_thread_id"), "effects", ["thread_id"])
    op.create_index(op.f("ix_effects_status_updated_at"), "effects", ["status", "updated_at"])
