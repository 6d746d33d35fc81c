"""Store when the vectors of an incomplete document were computed, so that old ones can be deleted."""

import time

import sqlalchemy as sa
from alembic import op

revision = "chat_0005"
down_revision = "chat_0004"


def upgrade() -> None:
    # Older processes insert rows without this column.
    op.add_column("chat_staged", sa.Column("staged_at", sa.Float()))
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # Rows of all tenants are changed here.
        connection.execute(sa.text("SELECT set_config('threadhold.everything', 'on', true)"))
    connection.execute(sa.text("UPDATE chat_staged SET staged_at = :now"), {"now": time.time()})
