"""Create the tables of documents and passages, and the full-text index of the passages."""

import sqlalchemy as sa
from alembic import op

from my_agent.chat.documents import keywords

revision = "chat_0001"
down_revision = None
branch_labels = ("chat",)


def upgrade() -> None:
    op.create_table(
        "chat_document",
        sa.Column("document_id", sa.Text(), primary_key=True),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.UniqueConstraint("tenant_id", "digest"),
    )
    op.create_table(
        "chat_file",
        sa.Column("tenant_id", sa.Text(), primary_key=True),
        sa.Column("path", sa.Text(), primary_key=True),
        sa.Column("document_id", sa.Text(), _document(), nullable=False),
    )
    op.create_index("ix_chat_file_document", "chat_file", ["document_id"])
    op.create_table(
        "chat_passage",
        sa.Column("passage_id", sa.Integer(), primary_key=True),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), _document(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("section", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint("document_id", "number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_chat_passage_tenant", "chat_passage", ["tenant_id", "passage_id"])
    op.create_table(
        "chat_index",
        sa.Column("tenant_id", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), nullable=False),
    )
    keywords.create(op.get_bind())


def _document() -> sa.ForeignKey:
    return sa.ForeignKey("chat_document.document_id", ondelete="CASCADE")
