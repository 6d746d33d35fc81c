"""Stock: the library's savers on a connection that somebody else commits."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.database.connection import Connection


class StockSaver(SqliteSaver):
    """The library's schema and SQL for SQLite; neither locks nor commits.

    The caller's thread owns the connection, and its transaction ends elsewhere.
    """

    def __init__(self, conn: Connection, serde: SerializerProtocol) -> None:
        # Not the library's constructor: it makes a serializer and a lock that are
        # never used here, which takes half as long as storing a checkpoint.
        self.conn = conn.raw
        self.serde = serde

    def setup(self) -> None:
        """Nothing: the tables exist since start-up."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor of the transaction in progress, whatever `transaction` says."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def stock_saver(conn: Connection, serde: SerializerProtocol) -> BaseCheckpointSaver[str]:
    """The library's saver for the database of `conn`, in its transaction."""
    if conn.dialect_name == "sqlite":
        return StockSaver(conn, serde)
    # Only here, because a server on SQLite does not need the driver of Postgres.
    from langgraph_runtime_sql.checkpoint.postgres import PostgresStockSaver

    return PostgresStockSaver(conn, serde)
