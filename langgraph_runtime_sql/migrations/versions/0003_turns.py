"""Turns between tenants: whose runs wait, and how many of whose are in flight."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

PENDING = sa.text("status = 'pending'")
RUNNING = sa.text("status = 'running'")
TENANT = sa.text("(CASE WHEN tenant IS NULL THEN '' ELSE tenant END)")


def upgrade() -> None:
    op.create_index(
        "ix_runs_pending_tenant",
        "runs",
        [TENANT, "created_at", "seq", "thread_id"],
        sqlite_where=PENDING,
        postgresql_where=PENDING,
    )
    op.create_index(
        "ix_runs_running_tenant",
        "runs",
        [TENANT],
        sqlite_where=RUNNING,
        postgresql_where=RUNNING,
    )
