"""Store where a passage stands: its page and its offsets in the document's text."""

import sqlalchemy as sa
from alembic import op

revision = "chat_0003"
down_revision = "chat_0002"


def upgrade() -> None:
    op.add_column("chat_passage", sa.Column("page", sa.Integer()))
    for name in ("start_offset", "end_offset"):
        # Older processes insert rows without these columns.
        op.add_column(
            "chat_passage", sa.Column(name, sa.Integer(), nullable=False, server_default="0")
        )
