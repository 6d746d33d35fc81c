"""Stock: the library's SQLite saver on a connection that somebody else commits."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.connection import Connection

# As the library's own metadata filter writes it, so that filters use the index too.
RUN_ID = "json_extract(CAST(metadata AS TEXT), '$.run_id')"


class StockSaver(SqliteSaver):
    """The library's schema and SQL; neither locks nor commits.

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
