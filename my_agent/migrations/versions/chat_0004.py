"""Create the table of vectors whose document is not complete yet."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "chat_0004"
down_revision = "chat_0003"


def upgrade() -> None:
    op.create_table(
        "chat_staged",
        sa.Column("tenant_id", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
    )
    secure(op.get_bind(), "chat_staged")
