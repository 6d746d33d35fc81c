"""Tables of the diagnosis: the events of each session, and snapshots of its state."""

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
