"""Formats: whether processes may write what those of older versions cannot read.

SQLite has one process. On Postgres, processes of an older version may still run during an upgrade:
until `threadhold compact` says that there is none, all write what these can read.
"""

from weakref import WeakSet

from sqlalchemy import literal_column, select

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.statements import Prepared

# A remark on a table that came with the first of these formats. A new database has it.
_IN_USE = "in use"
_REMARK = Prepared(
    lambda: select(
        literal_column("obj_description(to_regclass('checkpoint_parts'), 'pg_class')").label("text")
    )
)
ALLOW = f"COMMENT ON TABLE checkpoint_parts IS '{_IN_USE}'"
"""Allows the newest formats on Postgres from now on. No older process may be running."""
_allowing: WeakSet[Database] = WeakSet()


def allowed(conn: Connection) -> bool:
    """Return whether processes may write the newest formats."""
    if conn.dialect_name == "sqlite":
        return True
    database = process.current().database
    if database not in _allowing:
        if conn.scalar(_REMARK) != _IN_USE:
            return False
        _allowing.add(database)
    return True
