"""Resealing: encrypt stored events again, with another key or for the first time."""

from langgraph_runtime_sql import encryption
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import event_segments
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import envelope, keys
from langgraph_runtime_sql.events import dictionaries


def reseal(conn: Connection, row: Row) -> int:
    """Encrypt a row of the log with the tenant's newest key, unless it has it.

    Args:
        conn: A transaction that writes.
        row: The row, with its primary key, `tenant` and `events`.

    Returns:
        1 if the row has changed, else 0.

    Raises:
        KeyErased, CannotDecrypt: as in `dictionaries.opened`.
    """
    body = bytes(row["events"])
    newest = keys.current().for_writing(conn, row["tenant"]).id
    if body[:1] == envelope.VERSION and envelope.key_id(body) == newest:
        return 0
    opened, place = dictionaries.opened(conn, row), dictionaries.place(row)
    sealed = encryption.seal(row["tenant"], opened, place, conn)
    same = [column == row[column.name] for column in event_segments.primary_key.columns]
    conn.execute(event_segments.update().where(*same).values(events=sealed, size=len(sealed)))
    return 1
