"""Create the tables of the ICP finder."""

import sqlalchemy as sa
from alembic import op

revision = "icp_finder_0001"
down_revision = None
branch_labels = ("icp_finder",)


def upgrade() -> None:
    op.create_table(
        "companies",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("uen", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("is_live", sa.Boolean(), nullable=False),
        sa.Column("registered_on", sa.Text(), nullable=False),
        sa.Column("primary_ssic", sa.Text(), nullable=False),
        sa.Column("primary_activity", sa.Text(), nullable=False),
        sa.Column("secondary_ssic", sa.Text(), nullable=False),
        sa.Column("secondary_activity", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("postal_code", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "uen"),
    )
    op.create_index(
        "ix_companies_primary", "companies", ["tenant_id", "is_live", "primary_ssic"], unique=False
    )
    op.create_index(
        "ix_companies_secondary",
        "companies",
        ["tenant_id", "is_live", "secondary_ssic"],
        unique=False,
    )
    op.create_table(
        "enrichment_jobs",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("icp_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("candidate_keys", sa.JSON(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        sa.UniqueConstraint("tenant_id", "icp_hash", "rule_name", name="uq_enrichment_jobs_key"),
    )
    op.create_table(
        "icp_candidates",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("icp_hash", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("website", sa.Text(), nullable=True),
        sa.Column("uen", sa.Text(), nullable=True),
        sa.Column("ssic", sa.JSON(), nullable=False),
        sa.Column("industry", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("found_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("enriched_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "rule_name", "icp_hash", "key"),
    )
    op.create_table(
        "icp_discoveries",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("icp_hash", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("basis", sa.JSON(), nullable=False),
        sa.Column("discovered_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "rule_name", "icp_hash"),
    )
    op.create_index(
        "ix_icp_discoveries_latest",
        "icp_discoveries",
        ["tenant_id", "domain", "discovered_at"],
        unique=False,
    )
    op.create_table(
        "icp_rules",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("icp", sa.JSON(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "domain", "name"),
    )
    op.create_table(
        "icp_scores",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("icp_hash", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("scored_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "rule_name", "icp_hash", "key"),
    )
    op.create_index(
        "ix_icp_scores_best",
        "icp_scores",
        ["tenant_id", "rule_name", "icp_hash", "total"],
        unique=False,
    )
    op.create_table(
        "tenant_company_profiles",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("company", sa.JSON(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "domain"),
    )
