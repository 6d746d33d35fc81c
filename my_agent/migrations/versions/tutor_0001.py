"""Create the tables of the tutor, under row-level security."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "tutor_0001"
down_revision = None
branch_labels = ("tutor",)


def upgrade() -> None:
    op.create_table(
        "tutor_learners",
        sa.Column("tenant_id", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Text(), primary_key=True),
        sa.Column("level", sa.Text(), nullable=True),
        sa.Column("native_language", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "tutor_mistakes",
        sa.Column("tenant_id", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Text(), primary_key=True),
        sa.Column("mistake_id", sa.Text(), primary_key=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("original", sa.Text(), nullable=False),
        sa.Column("replacement", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("wrong", sa.Text(), nullable=False),
        sa.Column("right", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("last_message_id", sa.Text(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("card", sa.JSON(), nullable=True),
        sa.Column("due", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reviews", sa.Integer(), nullable=False),
    )
    op.create_index("ix_tutor_mistakes_due", "tutor_mistakes", ["tenant_id", "user_id", "due"])
    secure(op.get_bind(), "tutor_learners", "tutor_mistakes")
