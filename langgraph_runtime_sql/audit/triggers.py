"""Triggers of the audit log: entries are only added.

Two exceptions, each named by a setting of one transaction: retention deletes entries before a date,
and an erase empties the columns about the persons of one tenant. On SQLite the setting is a row of
`facts`, on Postgres a setting of the transaction.
"""

from typing import Any

from langgraph_runtime_sql.audit.entry import HASHED, PERSONAL
from langgraph_runtime_sql.database.schema import audit_entries

BEFORE = "audit_remove_before"
"""The setting of retention: microseconds since 1970."""
ERASED = "audit_erase_tenant"
"""The setting of an erase: the tenant."""

_TABLE = audit_entries.name
_FIXED = ("seq", *HASHED, "key_id", "hash")
_EMPTIED = (*PERSONAL, "salt")

# The message is the same on both databases.
MESSAGE = "audit entries are never changed"


def _is_erase(same: str) -> str:
    fixed = " AND ".join(f"NEW.{name} {same} OLD.{name}" for name in _FIXED)
    return f"{fixed} AND " + " AND ".join(f"NEW.{name} IS NULL" for name in _EMPTIED)


_IN_SQLITE = (
    f"""
    CREATE TRIGGER IF NOT EXISTS audit_update BEFORE UPDATE ON {_TABLE}
    WHEN NOT ({_is_erase("IS")} AND EXISTS (
        SELECT 1 FROM facts WHERE name = '{ERASED}' AND value = OLD.tenant
    ))
    BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END
    """,
    f"""
    CREATE TRIGGER IF NOT EXISTS audit_delete BEFORE DELETE ON {_TABLE}
    WHEN NOT EXISTS (
        SELECT 1 FROM facts WHERE name = '{BEFORE}' AND OLD.at < CAST(value AS INTEGER)
    )
    BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END
    """,
)

_FUNCTION = f"""
CREATE OR REPLACE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF extract(epoch FROM OLD.at) * 1000000
            < nullif(current_setting('threadhold.{BEFORE}', true), '')::bigint THEN
            RETURN OLD;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF OLD.tenant = nullif(current_setting('threadhold.{ERASED}', true), '')
            AND {_is_erase("IS NOT DISTINCT FROM")} THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION '{MESSAGE}';
END $$
"""
_IN_POSTGRES = {
    "audit_rows": f"""
        CREATE TRIGGER audit_rows BEFORE UPDATE OR DELETE ON {_TABLE} FOR EACH ROW
        EXECUTE FUNCTION audit_append_only()
    """,
    "audit_truncate": f"""
        CREATE TRIGGER audit_truncate BEFORE TRUNCATE ON {_TABLE} FOR EACH STATEMENT
        EXECUTE FUNCTION audit_append_only()
    """,
}


def ensure(raw: Any) -> None:
    """Create the missing triggers through a driver's connection to SQLite."""
    for statement in _IN_SQLITE:
        raw.execute(statement)


def ensure_postgres(raw: Any) -> None:
    """Create the missing triggers in Postgres.

    Args:
        raw: The driver's connection, in a transaction.
    """
    raw.execute(_FUNCTION)
    for name, statement in _IN_POSTGRES.items():
        # Replacing one would wait for the users of the table.
        if raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (name,)).fetchone() is None:
            raw.execute(statement)


def allow(conn: Any, setting: str, value: str) -> None:
    """Let the transaction of `conn` do what `setting` names, for `value`.

    On SQLite the caller ends it with `forbid` in the same transaction.
    """
    if conn.dialect_name == "sqlite":
        conn.raw.execute("INSERT INTO facts (name, value) VALUES (?, ?)", (setting, value))
    else:
        conn.raw.execute("SELECT set_config(%s, %s, true)", (f"threadhold.{setting}", value))


def forbid(conn: Any, setting: str) -> None:
    """End what `allow` began."""
    if conn.dialect_name == "sqlite":
        conn.raw.execute("DELETE FROM facts WHERE name = ?", (setting,))
    else:
        conn.raw.execute("SELECT set_config(%s, '', true)", (f"threadhold.{setting}",))
