"""Tables of the diagnosis: events and texts of each session, and what is derived from them.

Events and texts are kept by triggers. Snapshots of the state and digests of texts are caches.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, text

from my_agent.tables import metadata
from threadhold.tables import rules

# Declared first, and so deleted first with its thread: writers of events lock row 0.
sessions = Table(
    "diagnosis_sessions",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    # The state after this event. Row 0 is the session itself: writers of its events lock it.
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    # Version of the fold. Snapshots of other versions are ignored.
    Column("fold", Integer, nullable=False),
    # The time of the event `seq`, in microseconds since 1970.
    Column("at", BigInteger, nullable=False),
    # The state as JSON in ASCII.
    Column("state", Text, nullable=False),
    # Hash of the event `seq`, and checksum of the row.
    Column("event_hash", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    info=rules(thread="session_id", export=False),
)

events = Table(
    "diagnosis_events",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    # The id of the thread.
    Column("session_id", Text, primary_key=True),
    # From 1, without gaps: a trigger refuses an event that does not follow the one before it.
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("version", Integer, nullable=False),
    # JSON in ASCII, as it is hashed.
    Column("data", Text, nullable=False),
    # Microseconds since 1970; never less than those of the event before.
    Column("at", BigInteger, nullable=False),
    # Events with the same command were written together; a repeated command writes nothing.
    Column("command", Text, nullable=True),
    # Hash of the event before, and of this event with it.
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # Hash of the state after this event, if a snapshot was taken with it; else NULL.
    Column("state_hash", Text, nullable=True),
    # It does not begin with the session: without statistics, Postgres would take such an index
    # instead of the primary key, and read the whole session for each event.
    Index(
        "ix_diagnosis_events_command",
        "command",
        "tenant_id",
        "session_id",
        sqlite_where=text("command IS NOT NULL"),
        postgresql_where=text("command IS NOT NULL"),
    ),
    # A trigger keeps the events; this setting lets it accept a deletion.
    info=rules(thread="session_id", guard="diagnosis_erase_tenant"),
)

texts = Table(
    "diagnosis_texts",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    # From 0, without gaps. A source without text has one empty piece.
    Column("number", Integer, primary_key=True, autoincrement=False),
    # Characters of the source before this piece, those in it, and line ends before it.
    Column("start", BigInteger, nullable=False),
    Column("chars", Integer, nullable=False),
    Column("line", BigInteger, nullable=False),
    # Cut after a line end, except in very long lines. The last column: it is not read for the others.
    Column("text", Text, nullable=False),
    info=rules(thread="session_id", guard="diagnosis_erase_tenant"),
)

digests = Table(
    "diagnosis_digests",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    # The version of the readers.
    Column("reader", Integer, primary_key=True, autoincrement=False),
    # JSON.
    Column("digest", Text, nullable=False),
    info=rules(thread="session_id", export=False),
)
