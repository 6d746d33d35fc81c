"""Triggers: what the database keeps in step by itself, whoever changes a thread."""

from typing import Any

from langgraph_runtime_sql.tables import PERIOD_SECONDS

_NAME = "thread_periods"

_IN_SQLITE = f"""
CREATE TRIGGER IF NOT EXISTS {_NAME} AFTER UPDATE OF updated_at ON threads
WHEN NEW.updated_at / {PERIOD_SECONDS}000000 <> OLD.updated_at / {PERIOD_SECONDS}000000
BEGIN
    UPDATE thread_labels SET period = NEW.updated_at / {PERIOD_SECONDS}000000
    WHERE thread_id = NEW.thread_id;
END
"""

_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE thread_labels
    SET period = floor(extract(epoch FROM NEW.updated_at) / {PERIOD_SECONDS})
    WHERE thread_id = NEW.thread_id;
    RETURN NULL;
END $$
"""
_IN_POSTGRES = f"""
CREATE TRIGGER {_NAME} AFTER UPDATE OF updated_at ON threads FOR EACH ROW
WHEN (floor(extract(epoch FROM NEW.updated_at) / {PERIOD_SECONDS})
    <> floor(extract(epoch FROM OLD.updated_at) / {PERIOD_SECONDS}))
EXECUTE FUNCTION {_NAME}()
"""


def ensure(raw: Any) -> None:
    """Create them in SQLite where they are missing.

    Args:
        raw: The driver's connection.
    """
    raw.execute(_IN_SQLITE)


def ensure_postgres(raw: Any) -> None:
    """The same in Postgres.

    Args:
        raw: The driver's connection.
    """
    # Only where it is missing: to replace one would wait for whoever uses a thread.
    known = raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (_NAME,)).fetchone()
    raw.execute(_FUNCTION)
    if known is None:
        raw.execute(_IN_POSTGRES)
