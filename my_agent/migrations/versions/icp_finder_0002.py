"""Enable row-level security for the tables of the ICP finder."""

from alembic import op

from threadhold.tables import secure

revision = "icp_finder_0002"
down_revision = "icp_finder_0001"

TABLES = (
    "tenant_company_profiles",
    "icp_rules",
    "icp_discoveries",
    "icp_candidates",
    "icp_scores",
    "enrichment_jobs",
    "companies",
)


def upgrade() -> None:
    secure(op.get_bind(), *TABLES)
