"""Add the dictionaries with which large events of the log are compressed."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("event_segments", sa.Column("dictionary", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    # Without the dictionaries the events cannot be read. Readers learn that they are lost.
    op.execute("DELETE FROM event_segments WHERE epoch = -1")
    op.execute("UPDATE event_segments SET events = NULL, size = 0 WHERE dictionary IS NOT NULL")
    op.drop_column("event_segments", "dictionary")
