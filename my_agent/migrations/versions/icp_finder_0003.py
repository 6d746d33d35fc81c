"""Create the table of feedback on candidates, with row-level security."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "icp_finder_0003"
down_revision = "icp_finder_0002"


def upgrade() -> None:
    op.create_table(
        "icp_feedback",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "rule_name", "key"),
    )
    secure(op.get_bind(), "icp_feedback")
