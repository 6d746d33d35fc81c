"""Labels in the order in which their threads were used."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql import tables

revision = "0003"
down_revision = "0002"

SECONDS = 600


def upgrade() -> None:
    # Made anew, since its primary key is another.
    op.rename_table("thread_labels", "old_labels")
    on_postgres = op.get_context().dialect.name == "postgresql"
    if on_postgres:
        # Its name is the new one's.
        op.drop_constraint(op.f("pk_thread_labels"), "old_labels")
        op.drop_constraint(op.f("fk_thread_labels_thread_id"), "old_labels")
    op.drop_index(op.f("ix_thread_labels_thread_id"), "old_labels")
    op.create_table(
        "thread_labels",
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
    period = (
        f"floor(extract(epoch FROM threads.updated_at) / {SECONDS})"
        if on_postgres
        else f"threads.updated_at / {SECONDS}000000"
    )
    op.execute(
        "INSERT INTO thread_labels (thread_id, key, value, period, tenant)"
        f" SELECT thread_id, key, value, {period}, old_labels.tenant"
        " FROM old_labels JOIN threads USING (thread_id)"
    )
    op.drop_table("old_labels")
    op.create_index(
        op.f("ix_thread_labels_key_value_period_thread_id"),
        "thread_labels",
        ["key", "value", "period", "thread_id"],
        postgresql_include=["tenant"],
    )
