"""Add what limits need: the user and the priority of runs, and the starts of each tenant."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TENANT = "(CASE WHEN tenant IS NULL THEN '' ELSE tenant END)"
# Rows that older processes write have no user and the ordinary priority.
ADD = (
    "ALTER TABLE runs ADD COLUMN IF NOT EXISTS user_id TEXT",
    "ALTER TABLE runs ADD COLUMN IF NOT EXISTS priority INTEGER NOT NULL DEFAULT 0",
)
INDEXES = (
    f"""
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_runs_pending_turn
    ON runs ({TENANT}, priority DESC, created_at, seq, thread_id) WHERE status = 'pending'
    """,
    """
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_assistants_tenant_created_at
    ON assistants (tenant, created_at)
    """,
)


def prepare(raw: Any) -> None:
    """Add the columns and build the index in Postgres beside writers: a build reads all runs."""
    from langgraph_runtime_sql.database.postgres import lock_wait
    from langgraph_runtime_sql.migrations import postgres

    def add() -> None:
        for statement in ADD:
            raw.execute(statement)

    lock_wait.transaction(raw, add)
    for index in INDEXES:
        lock_wait.concurrently(raw, index)
    # The index of an interrupted migration.
    postgres.mend_indexes(raw)


def upgrade() -> None:
    op.create_table(
        "limit_usage",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "scope", "name", name=op.f("pk_limit_usage")),
        sqlite_with_rowid=False,
    )
    # Of a tenant's pending runs, those of the highest priority start first.
    op.drop_index("ix_runs_pending_tenant", "runs")
    if op.get_context().dialect.name == "postgresql":
        return
    op.create_index("ix_assistants_tenant_created_at", "assistants", ["tenant", "created_at"])
    op.add_column("runs", sa.Column("user_id", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.create_index(
        "ix_runs_pending_turn",
        "runs",
        [sa.text(TENANT), sa.text("priority DESC"), "created_at", "seq", "thread_id"],
        sqlite_where=sa.text("status = 'pending'"),
    )
