"""Tables of the graph `chat`: documents, their files and passages, and a version per tenant."""

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from my_agent.tables import metadata
from threadhold.tables import Derived, rules

# Seconds after which the vectors of a document that was not completed are deleted.
ABANDONED = 7 * 24 * 3600.0

documents = Table(
    "chat_document",
    metadata,
    Column("document_id", Text, primary_key=True),
    Column("tenant_id", Text, nullable=False),
    # Hash of the file's bytes and of the reader's version: equal digests mean the same document.
    Column("digest", Text, nullable=False),
    UniqueConstraint("tenant_id", "digest"),
)

files = Table(
    "chat_file",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    # Absolute, so that ingesting a folder and ingesting its subfolder agree on the same files.
    Column("path", Text, primary_key=True),
    Column(
        "document_id",
        Text,
        ForeignKey("chat_document.document_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Index("ix_chat_file_document", "document_id"),
    # The files themselves are the operator's; an export copies them, and an erase names them.
    info=rules(files="path"),
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
    # Position in the document, from 1.
    Column("number", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("section", Text, nullable=False),
    Column("text", Text, nullable=False),
    # Page of the file, from 1; empty if the file has no pages.
    Column("page", Integer),
    # Offsets in the document's text, in characters.
    Column("start_offset", Integer, nullable=False, server_default="0"),
    Column("end_offset", Integer, nullable=False, server_default="0"),
    # 32-bit little-endian floats, normalized to length 1.
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("document_id", "number"),
    Index("ix_chat_passage_tenant", "tenant_id", "passage_id"),
    # Ids are never reused: a cached id refers to this passage or to none.
    sqlite_autoincrement=True,
    info=rules(
        derived=(
            # Words of the passages on Postgres, which a trigger adds and a foreign key deletes.
            Derived("chat_word", tenant="tenant_id"),
            # SQLite's index of words, which triggers update.
            Derived(
                "chat_passage_words",
                rebuild="INSERT INTO chat_passage_words (chat_passage_words) VALUES ('rebuild')",
            ),
            *(
                Derived(f"chat_passage_words_{part}")
                for part in ("config", "data", "docsize", "idx")
            ),
        )
    ),
)

staged = Table(
    "chat_staged",
    metadata,
    # Vectors of a document whose ingestion was interrupted: the next one continues behind them.
    Column("tenant_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    # Position in the document, from 1.
    Column("number", Integer, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    # Seconds since 1970.
    Column("staged_at", Float),
    info=rules(age="staged_at", keep_seconds=ABANDONED),
)

versions = Table(
    "chat_index",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    # A new unique value after each change of the tenant's documents.
    Column("version", Text, nullable=False),
    info=rules(export=False),
)
