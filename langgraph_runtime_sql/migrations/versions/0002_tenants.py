"""Add the tenant of each row."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = ("assistants", "assistant_versions", "threads", "thread_labels", "runs", "crons")


def upgrade() -> None:
    # NULL at first: the next start fills them, because it knows the tenant key.
    for table in TABLES:
        op.add_column(table, sa.Column("tenant", sa.Text(), nullable=True))
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )
