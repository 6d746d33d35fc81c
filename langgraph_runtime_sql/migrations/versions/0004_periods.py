"""Sort labels by the period in which their thread was last updated."""

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema
from langgraph_runtime_sql.migrations import triggers

revision = "0004"
down_revision = "0003"

SECONDS = 600
TABLE = "thread_labels"
KNOWN = "ck_thread_labels_period"
KEY = "uq_thread_labels_thread_id_key"

# Triggers fill and renew the period of rows written from now on.
ADD = (
    # Operations lock the tables in the same order.
    "LOCK TABLE threads IN SHARE ROW EXCLUSIVE MODE",
    f"ALTER TABLE {TABLE} ADD COLUMN IF NOT EXISTS period BIGINT",
)
FILL = f"""
    UPDATE {TABLE} SET period = floor(extract(epoch FROM threads.updated_at) / {SECONDS})
    FROM threads WHERE threads.thread_id = {TABLE}.thread_id
        AND {TABLE}.thread_id = ANY (%s) AND {TABLE}.period IS NULL
"""
INDEXES = (
    f"CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS {KEY} ON {TABLE} (thread_id, key)",
    f"""
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_thread_labels_key_value_period_thread_id_tenant
    ON {TABLE} (key, value, period, thread_id, tenant)
    """,
)
# A validated check spares SET NOT NULL a scan of the locked table.
CHECK = (
    f"ALTER TABLE {TABLE} DROP CONSTRAINT IF EXISTS {KNOWN}",
    f"ALTER TABLE {TABLE} ADD CONSTRAINT {KNOWN} CHECK (period IS NOT NULL) NOT VALID",
)


def prepare(raw: Any) -> None:
    """Do the slow part in Postgres, while others use the table."""
    from langgraph_runtime_sql.database.postgres import lock_wait
    from langgraph_runtime_sql.migrations import pages, postgres

    def add() -> None:
        _execute(raw, ADD)
        triggers.ensure_postgres(raw)

    lock_wait.transaction(raw, add)
    pages.each(raw, "threads", "thread_id", FILL)
    for statement in INDEXES:
        lock_wait.concurrently(raw, statement)
    # Indexes of an interrupted migration.
    postgres.mend_indexes(raw)
    lock_wait.transaction(raw, partial(_execute, raw, CHECK))
    lock_wait.concurrently(raw, f"ALTER TABLE {TABLE} VALIDATE CONSTRAINT {KNOWN}")


def _execute(raw: Any, statements: tuple[str, ...]) -> None:
    for statement in statements:
        raw.execute(statement)


def upgrade() -> None:
    op.drop_index(op.f("ix_thread_labels_thread_id"), TABLE)
    if op.get_context().dialect.name == "postgresql":
        _in_place()
    else:
        _recreate()


def _in_place() -> None:
    op.alter_column(TABLE, "period", nullable=False)
    op.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {KNOWN}")
    op.drop_constraint(op.f("pk_thread_labels"), TABLE)
    op.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT pk_thread_labels PRIMARY KEY USING INDEX {KEY}")


def _recreate() -> None:
    """Copy the table: SQLite cannot change a primary key."""
    op.rename_table(TABLE, "old_labels")
    op.create_table(
        TABLE,
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_thread_labels_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("thread_id", "key", name=op.f("pk_thread_labels")),
        sqlite_with_rowid=False,
    )
    op.execute(
        f"INSERT INTO {TABLE} (thread_id, key, value, period, tenant)"
        f" SELECT thread_id, key, value, threads.updated_at / {SECONDS}000000, old_labels.tenant"
        " FROM old_labels JOIN threads USING (thread_id)"
    )
    op.drop_table("old_labels")
    op.create_index(
        op.f("ix_thread_labels_key_value_period_thread_id_tenant"),
        TABLE,
        ["key", "value", "period", "thread_id", "tenant"],
    )
