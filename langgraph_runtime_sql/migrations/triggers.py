"""Triggers: what the database keeps in step by itself, whoever changes a thread."""

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

# Processes that were started before there were periods write labels without one. SQLite has no
# such processes: who migrates a file has it to himself.
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
    """Create them in SQLite where they are missing.

    Args:
        raw: The driver's connection.
    """
    raw.execute(_IN_SQLITE)


def ensure_postgres(raw: Any) -> None:
    """The same in Postgres, and what completes the rows of older processes.

    They belong into the transaction that adds the column. What is there by then is filled after it.

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
    """Whether a trigger is there: to replace one would wait for whoever uses its table."""
    found = raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (name,)).fetchone()
    return found is not None
