"""What is kept of documents: where each came from, its passages, and when they last changed."""

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from my_agent.database import metadata

SHARED = ""
"""The tenant of what every tenant may read."""

documents = Table(
    "chat_document",
    metadata,
    Column("document_id", Text, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    # Of its bytes and of how they are read: what has the same is the same document.
    Column("digest", Text, nullable=False),
    UniqueConstraint("tenant_id", "digest"),
)

files = Table(
    "chat_file",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    # Absolute, so that a folder and one inside it agree on what they hold.
    Column("path", Text, primary_key=True),
    Column(
        "document_id",
        Text,
        ForeignKey("chat_document.document_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Index("ix_chat_file_document", "document_id"),
)

passages = Table(
    "chat_passage",
    metadata,
    Column("passage_id", Integer, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    Column(
        "document_id",
        Text,
        ForeignKey("chat_document.document_id", ondelete="CASCADE"),
        nullable=False,
    ),
    # Its place in the document, from 1.
    Column("number", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("section", Text, nullable=False),
    Column("text", Text, nullable=False),
    # 32-bit floats, little-endian, of length 1.
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("document_id", "number"),
    Index("ix_chat_passage_tenant", "tenant_id", "passage_id"),
    # An id is never given again, so that one which was kept means this passage or none.
    sqlite_autoincrement=True,
)

versions = Table(
    "chat_index",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    # Another one after each change, and never one that was there before.
    Column("version", Text, nullable=False),
)
