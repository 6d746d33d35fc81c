"""Add the key of each audit entry, and the proof that an erase emptied one."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    # Older processes write entries without a key.
    op.add_column("audit_entries", sa.Column("key_id", sa.Text(), nullable=True))
    op.add_column("audit_entries", sa.Column("erased", sa.Text(), nullable=True))
    _drop_trigger()


def downgrade() -> None:
    _drop_trigger()
    op.drop_column("audit_entries", "erased")
    op.drop_column("audit_entries", "key_id")


def _drop_trigger() -> None:
    """Drop the trigger that names the columns; the next start creates it again."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER IF EXISTS audit_update")
