"""Stock: the library's savers on a connection that somebody else commits."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_runtime_sql.database.connection import Connection

# As the library's own metadata filter writes it, so that filters use the index too.
RUN_ID = "json_extract(CAST(metadata AS TEXT), '$.run_id')"

# What its two schemas call the same things.
NAMES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {"run_id": RUN_ID, "writes": "writes", "value": "value"},
    "postgresql": {
        "run_id": "metadata ->> 'run_id'",
        "writes": "checkpoint_writes",
        "value": "blob",
    },
}
_NAMED = re.compile(r":(\w+)")


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
    from langgraph_runtime_sql.checkpoint.postgres import PostgresStockSaver

    return PostgresStockSaver(conn, serde)


def run(conn: Connection, statement: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """Execute a statement of ours on the library's tables; the driver's cursor.

    Args:
        statement: With `?` or `:name` for parameters, and the keys of `NAMES` in braces.
    """
    return conn.raw.execute(_text(statement, conn.dialect_name), params)


def run_many(
    conn: Connection, statement: str, params: Sequence[Sequence[Any] | Mapping[str, Any]]
) -> None:
    """The same for each of `params`, which nobody asks the outcome of."""
    conn.send_text(_text(statement, conn.dialect_name), params)


@cache
def _text(statement: str, dialect_name: str) -> str:
    text = statement.format_map(NAMES[dialect_name])
    if dialect_name == "sqlite":
        return text
    return _NAMED.sub(r"%(\1)s", text.replace("?", "%s"))
