"""Stock savers: the library's, on a connection whose owner commits."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.checkpoint import parts, undo
from langgraph_runtime_sql.checkpoint.sql import NAMES, RUN_ID
from langgraph_runtime_sql.database.connection import Connection


class StockSaver(SqliteSaver):
    """The library's schema and SQL for SQLite. It neither locks nor commits."""

    def __init__(self, conn: Connection, serde: SerializerProtocol) -> None:
        # Not the library's constructor: it makes an unused serializer and lock, which takes half as
        # long as storing a checkpoint.
        self.conn = conn.raw
        self.serde = serde

    def setup(self) -> None:
        """Do nothing: the tables exist since start-up."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Open a cursor in the current transaction; `transaction` is ignored."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def ensure_schema(raw: sqlite3.Connection) -> None:
    """Create the missing tables and indexes of the saver, and our additions; commit.

    Args:
        raw: A connection outside any transaction.
    """
    SqliteSaver(raw).setup()
    raw.execute(f"CREATE INDEX IF NOT EXISTS ix_checkpoints_run_id ON checkpoints ({RUN_ID})")
    raw.execute(undo.TABLE.format(binary="BLOB", **NAMES["sqlite"]) + " WITHOUT ROWID")
    raw.execute(parts.TABLE.format(binary="BLOB", **NAMES["sqlite"]) + " WITHOUT ROWID")
    raw.execute("CREATE INDEX IF NOT EXISTS ix_run_writes_thread_id ON run_writes (thread_id)")
    raw.commit()


def stock_saver(conn: Connection, serde: SerializerProtocol) -> BaseCheckpointSaver[str]:
    """Return the library's saver for the database of `conn`, in its transaction."""
    if conn.dialect_name == "sqlite":
        return StockSaver(conn, serde)
    # A server on SQLite does not import the driver of Postgres.
    from langgraph_runtime_sql.checkpoint.postgres import PostgresStockSaver

    return PostgresStockSaver(conn, serde)
