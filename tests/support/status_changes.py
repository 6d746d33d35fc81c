"""Triggers that record every change of the status of a run or thread."""

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
    """Start to record the changes in the database of this path."""
    databases.execute(path, _TABLE)
    written = (_SQLITE,) if databases.kind() == "sqlite" else (_FUNCTION, _POSTGRES)
    for table in ("runs", "threads"):
        for event, old in (("insert", "NULL"), ("update", "OLD.status")):
            for statement in written:
                databases.execute(path, statement.format(table=table, event=event, old=old))


def recorded(path: Path, table: str) -> set[tuple[str | None, str]]:
    """Return the changes of a table as pairs of old and new status; a new row's old one is None."""
    found = databases.execute(
        path, "SELECT DISTINCT old, new FROM status_changes WHERE of_table = ?", table
    )
    return {(old, new) for old, new in found if old != new}
