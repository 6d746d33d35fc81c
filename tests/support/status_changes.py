"""Triggers that record every change of a run's or thread's status, whatever statement makes it."""

from pathlib import Path

from tests.support import databases

_TABLE = "CREATE TABLE status_changes (of_table text, old text, new text)"
_SQLITE = """
CREATE TRIGGER {table}_status_{event} AFTER {event} ON {table}
BEGIN
    INSERT INTO status_changes VALUES ('{table}', {old}, NEW.status);
END
"""
_FUNCTION = """
CREATE FUNCTION {table}_status_{event}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO status_changes VALUES ('{table}', {old}, NEW.status);
    RETURN NULL;
END $$
"""
_POSTGRES = """
CREATE TRIGGER {table}_status_{event} AFTER {event} ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_status_{event}()
"""


def record(path: Path) -> None:
    """Record the changes in the database that goes by `path` from now on."""
    databases.execute(path, _TABLE)
    written = (_SQLITE,) if databases.kind() == "sqlite" else (_FUNCTION, _POSTGRES)
    for table in ("runs", "threads"):
        for event, old in (("insert", "NULL"), ("update", "OLD.status")):
            for statement in written:
                databases.execute(path, statement.format(table=table, event=event, old=old))


def recorded(path: Path, table: str) -> set[tuple[str | None, str]]:
    """The changes of a table: what a status was, or None in a new row, and what it became."""
    found = databases.execute(
        path, "SELECT DISTINCT old, new FROM status_changes WHERE of_table = ?", table
    )
    return {(old, new) for old, new in found if old != new}
