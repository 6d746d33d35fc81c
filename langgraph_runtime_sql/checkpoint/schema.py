"""The tables of checkpoints in SQLite: the library's, and our one beside them."""

import sqlite3

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.checkpoint import undo
from langgraph_runtime_sql.checkpoint.sql import RUN_ID


def ensure_schema(raw: sqlite3.Connection) -> None:
    """Create the missing tables and indexes of the saver, and our additions.

    Args:
        raw: A connection outside any transaction; the changes are committed.
    """
    SqliteSaver(raw).setup()
    raw.execute(f"CREATE INDEX IF NOT EXISTS ix_checkpoints_run_id ON checkpoints ({RUN_ID})")
    undo.ensure_schema(raw)
    raw.commit()
