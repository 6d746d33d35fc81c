"""Keep each version of a discovery, what no longer matches, and attempts to enrich."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "icp_finder_0004"
down_revision = "icp_finder_0003"


def upgrade() -> None:
    op.create_table(
        "icp_discovery_versions",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("icp_hash", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sources", sa.JSON(), nullable=False),
        sa.Column("candidates", sa.JSON(), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("discovered_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "rule_name", "icp_hash", "version"),
    )
    # Processes of the previous version write rows without these columns.
    op.add_column(
        "icp_discoveries", sa.Column("version", sa.Integer(), nullable=False, server_default="1")
    )
    op.add_column("icp_candidates", sa.Column("gone_at", sa.DateTime(timezone=True)))
    op.add_column("icp_candidates", sa.Column("tried_at", sa.DateTime(timezone=True)))
    op.add_column("icp_scores", sa.Column("evidence", sa.JSON()))
    op.add_column("icp_scores", sa.Column("proven", sa.Float(), nullable=False, server_default="0"))
    op.add_column("enrichment_jobs", sa.Column("started_at", sa.DateTime(timezone=True)))
    secure(op.get_bind(), "icp_discovery_versions")
