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

    def __init__(self, conn: Connection, serde: SerializerProtocol | None = None) -> None:
        super().__init__(conn.raw, serde=serde)

    def setup(self) -> None:
        """Nothing: the tables exist since start-up."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor of the transaction in progress, whatever `transaction` says."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def ensure_schema(raw: sqlite3.Connection) -> None:
    """Create the saver's tables, and the index that finds the checkpoints of a run.

    Args:
        raw: A connection outside any transaction; what it does is committed.
    """
    SqliteSaver(raw).setup()
    raw.execute(f"CREATE INDEX IF NOT EXISTS ix_checkpoints_run_id ON checkpoints ({RUN_ID})")
    raw.commit()
