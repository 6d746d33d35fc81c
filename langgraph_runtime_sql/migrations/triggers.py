"""Triggers: labels follow their thread's last update, whichever process changes it."""

from typing import Any

from langgraph_runtime_sql.database.schema import PERIOD_SECONDS

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
    """Create the missing triggers through a driver's connection to SQLite."""
    raw.execute(_IN_SQLITE)


def ensure_postgres(raw: Any) -> None:
    """Create the missing triggers in Postgres.

    Args:
        raw: The driver's connection, in a transaction.
    """
    raw.execute(_FUNCTION)
    if not _is_known(raw, _NAME):
        raw.execute(_IN_POSTGRES)


def _is_known(raw: Any, name: str) -> bool:
    """Return whether a trigger exists: replacing one would wait for the users of its table."""
    found = raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (name,)).fetchone()
    return found is not None
