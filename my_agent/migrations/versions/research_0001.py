"""Create the tables of the graph `research`."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "research_0001"
down_revision = None
branch_labels = ("research",)


def upgrade() -> None:
    op.create_table(
        "research_pages",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("requested", sa.Text(), nullable=False),
        sa.Column("page", sa.JSON(), nullable=True),
        sa.Column("failure", sa.JSON(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fetched_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", "requested"),
    )
    op.create_index(
        "ix_research_pages_project", "research_pages", ["tenant_id", "project_id"], unique=False
    )
    op.create_table(
        "research_projects",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("flag", sa.Text(), nullable=False),
        sa.Column("flag_at", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("beat_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "project_id"),
    )
    secure(op.get_bind(), "research_pages", "research_projects")
