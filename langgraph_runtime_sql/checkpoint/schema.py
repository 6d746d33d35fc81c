"""Schema: the tables of checkpoints, the library's and the one of ours beside them."""

import sqlite3

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.checkpoint import undo
from langgraph_runtime_sql.checkpoint.sql import RUN_ID


def ensure_schema(raw: sqlite3.Connection) -> None:
    """Create what is missing of the saver's tables and of what we add to them.

    Args:
        raw: A connection outside any transaction; what it does is committed.
    """
    SqliteSaver(raw).setup()
    raw.execute(f"CREATE INDEX IF NOT EXISTS ix_checkpoints_run_id ON checkpoints ({RUN_ID})")
    undo.ensure_schema(raw)
    raw.commit()
