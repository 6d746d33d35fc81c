"""Tables of the tutor: learners and their mistakes. Every row has a tenant and a user."""

from sqlalchemy import JSON, Column, Index, Integer, Table, Text

from my_agent.tables import metadata
from threadhold.tables import UtcDateTime


def _text(name: str, *, key: bool = False, null: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null)


learners = Table(
    "tutor_learners",
    metadata,
    _text("tenant_id", key=True),
    _text("user_id", key=True),
    # A level of the Common European Framework, A1 to C2.
    _text("level", null=True),
    _text("native_language", null=True),
    Column("updated_at", UtcDateTime, nullable=False),
)

mistakes = Table(
    "tutor_mistakes",
    metadata,
    _text("tenant_id", key=True),
    _text("user_id", key=True),
    # Digest of type, original and replacement.
    _text("mistake_id", key=True),
    _text("type"),
    _text("original"),
    _text("replacement"),
    _text("message"),
    # The sentence with this mistake only, and without it.
    _text("wrong"),
    _text("right"),
    Column("count", Integer, nullable=False),
    # A run that is tried again does not count a message twice.
    _text("last_message_id"),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    # The scheduler's state; null before the first review.
    Column("card", JSON, nullable=True),
    Column("due", UtcDateTime, nullable=False),
    Column("reviews", Integer, nullable=False),
    Index("ix_tutor_mistakes_due", "tenant_id", "user_id", "due"),
)
