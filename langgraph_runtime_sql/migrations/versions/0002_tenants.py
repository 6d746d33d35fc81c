"""Whose each row is."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = ("assistants", "assistant_versions", "threads", "thread_labels", "runs", "crons")


def upgrade() -> None:
    # Without a value: what the metadata call a tenant is known at the next start.
    for table in TABLES:
        op.add_column(table, sa.Column("tenant", sa.Text(), nullable=True))
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )
