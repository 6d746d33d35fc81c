"""Enable row-level security for the documents."""

from alembic import op

from threadhold.tables import secure

revision = "chat_0002"
down_revision = "chat_0001"


def upgrade() -> None:
    secure(op.get_bind(), "chat_document", "chat_file", "chat_passage", "chat_index")
