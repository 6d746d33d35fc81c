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

_PERIOD = f"floor(extract(epoch FROM updated_at) / {PERIOD_SECONDS})"

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

# Older processes write labels without a period. SQLite has no such processes: a migration owns
# the file.
_FILL = "label_periods"
_FILL_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_FILL}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT {_PERIOD} INTO NEW.period FROM threads WHERE thread_id = NEW.thread_id;
    RETURN NEW;
END $$
"""
_FILL_IN_POSTGRES = f"""
CREATE TRIGGER {_FILL} BEFORE INSERT ON thread_labels FOR EACH ROW
WHEN (NEW.period IS NULL) EXECUTE FUNCTION {_FILL}()
"""


def ensure(raw: Any) -> None:
    """Create the missing triggers through a driver's connection to SQLite."""
    raw.execute(_IN_SQLITE)


def ensure_postgres(raw: Any) -> None:
    """Create the missing triggers in Postgres, also the one that completes older processes' rows.

    A migration creates them in the transaction that adds the column; it fills earlier rows later.

    Args:
        raw: The driver's connection, in a transaction.
    """
    raw.execute(_FUNCTION)
    if not _is_known(raw, _NAME):
        raw.execute(_IN_POSTGRES)
    raw.execute(_FILL_FUNCTION)
    if not _is_known(raw, _FILL):
        raw.execute(_FILL_IN_POSTGRES)


def _is_known(raw: Any, name: str) -> bool:
    """Return whether a trigger exists: replacing one would wait for the users of its table."""
    found = raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (name,)).fetchone()
    return found is not None
