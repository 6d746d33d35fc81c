"""Labels in the order in which their threads were used."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql import tables

revision = "0004"
down_revision = "0003"

SECONDS = 600
TABLE = "thread_labels"


def upgrade() -> None:
    op.drop_index(op.f("ix_thread_labels_thread_id"), TABLE)
    if op.get_context().dialect.name == "postgresql":
        _in_place()
    else:
        _made_anew()
    op.create_index(
        op.f("ix_thread_labels_key_value_period_thread_id_tenant"),
        TABLE,
        ["key", "value", "period", "thread_id", "tenant"],
    )


def _in_place() -> None:
    op.add_column(TABLE, sa.Column("period", sa.BigInteger(), nullable=True))
    op.execute(
        f"UPDATE {TABLE} SET period = floor(extract(epoch FROM threads.updated_at) / {SECONDS})"
        f" FROM threads WHERE threads.thread_id = {TABLE}.thread_id"
    )
    op.alter_column(TABLE, "period", nullable=False)
    op.drop_constraint(op.f("pk_thread_labels"), TABLE)
    op.create_primary_key(op.f("pk_thread_labels"), TABLE, ["thread_id", "key"])


def _made_anew() -> None:
    """SQLite cannot change a primary key."""
    op.rename_table(TABLE, "old_labels")
    op.create_table(
        TABLE,
        sa.Column("thread_id", tables.Id(), nullable=False),
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
