"""Index pending and running runs by tenant, for turns between tenants."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

PENDING = sa.text("status = 'pending'")
RUNNING = sa.text("status = 'running'")
TENANT = "(CASE WHEN tenant IS NULL THEN '' ELSE tenant END)"
IN_POSTGRES = (
    f"""
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_runs_pending_tenant
    ON runs ({TENANT}, created_at, seq, thread_id) WHERE status = 'pending'
    """,
    f"""
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_runs_running_tenant
    ON runs ({TENANT}) WHERE status = 'running'
    """,
)


def prepare(raw: Any) -> None:
    """Build the indexes in Postgres beside writers: a build reads all runs."""
    from langgraph_runtime_sql.database.postgres.lock_wait import concurrently

    for statement in IN_POSTGRES:
        concurrently(raw, statement)


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        return
    op.create_index(
        "ix_runs_pending_tenant",
        "runs",
        [sa.text(TENANT), "created_at", "seq", "thread_id"],
        sqlite_where=PENDING,
    )
    op.create_index("ix_runs_running_tenant", "runs", [sa.text(TENANT)], sqlite_where=RUNNING)
