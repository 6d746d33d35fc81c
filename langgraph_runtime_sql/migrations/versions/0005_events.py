"""Add the event log of threads."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0005"
down_revision = "0004"

TABLE = "event_segments"
STORED = sa.text("events IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("resumable", sa.Boolean(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("events", sa.LargeBinary(), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_event_segments_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("thread_id", "epoch", "first", name=op.f("pk_event_segments")),
    )
    op.create_index(
        "ix_event_segments_stored",
        TABLE,
        ["resumable", "created_at"],
        sqlite_where=STORED,
        postgresql_where=STORED,
    )
