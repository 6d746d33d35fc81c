"""Saver tables: what `langgraph-checkpoint-sqlite` and `-postgres` store, read by these packages."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph_runtime_sql.database.url import postgres_dsn, shown
from threadhold.imports.errors import CannotImport
from threadhold.imports.exact import ExactSerializer
from threadhold.imports.sources import Item, Row, Source

_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgres": "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = ANY (current_schemas(false))",
}
_OURS = "thread_checkpoints"


@contextmanager
def opened_sqlite(path: Path) -> Iterator[Source]:
    """Open a SQLite file for reading.

    Raises:
        CannotImport: it has no such tables, or the package is missing.
    """
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise _missing("langgraph-checkpoint-sqlite") from error
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as conn:
        saver = SqliteSaver(conn, serde=ExactSerializer())
        # The tables are there, and the file is only read.
        saver.is_setup = True
        try:
            yield SaverTables(conn, "sqlite", saver, str(path))
        except sqlite3.DatabaseError as error:
            raise CannotImport(f"{path} cannot be read: {error}") from error


@contextmanager
def opened_postgres(url: str) -> Iterator[Source]:
    """Open a Postgres database for reading.

    Raises:
        CannotImport: it has no such tables, cannot be reached, or the package is missing.
    """
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
    except ImportError as error:
        raise _missing("langgraph-checkpoint-postgres") from error
    try:
        with psycopg.connect(
            postgres_dsn(url), autocommit=True, prepare_threshold=0, row_factory=dict_row
        ) as conn:
            conn.execute("SET default_transaction_read_only = on")
            saver = PostgresSaver(conn, serde=ExactSerializer())
            yield SaverTables(conn, "postgres", saver, shown(url))
    except psycopg.OperationalError as error:
        raise CannotImport(f"{shown(url)} cannot be read: {error}") from error


def _missing(package: str) -> CannotImport:
    return CannotImport(f"The package {package} reads these tables: pip install {package}")


class SaverTables:
    """The tables as a `Source`.

    Args:
        conn: A connection of the driver.
        kind: `sqlite` or `postgres`.
        saver: langgraph's saver on it.
        place: What messages call the database.
    """

    has_threads = False

    def __init__(self, conn: Any, kind: str, saver: BaseCheckpointSaver[Any], place: str) -> None:
        self._conn = conn
        self._kind = kind
        self.states = saver
        self.left_out: Mapping[str, int] = {}
        self._tables = {name for (name,) in self._rows(_TABLES[kind])}
        if "checkpoints" in self._tables:
            return
        if _OURS in self._tables:
            raise CannotImport(
                f"{place} is a database of Threadhold: use it as it is, or move it with "
                "`threadhold migrate --from --to`"
            )
        raise CannotImport(f"{place} has no table `checkpoints` of langgraph's savers")

    def _rows(self, query: str, *params: Any) -> Iterator[tuple[Any, ...]]:
        marks = query if self._kind == "sqlite" else query.replace("?", "%s")
        for row in self._conn.execute(marks, params).fetchall():
            yield tuple(row.values()) if isinstance(row, dict) else tuple(row)

    def assistants(self) -> Iterator[tuple[Row, Sequence[Row]]]:
        """Yield nothing: a saver knows no assistants."""
        return iter(())

    def threads(self) -> Iterator[Row]:
        """Yield the ids of the threads."""
        for (thread_id,) in self._rows("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1"):
            yield {"thread_id": thread_id}

    def paths(self, thread_id: str) -> Mapping[tuple[str, str, str], str]:
        """Return the paths of a thread's tasks. Only Postgres has them."""
        if self._kind == "sqlite":
            return {}
        found = self._rows(
            "SELECT DISTINCT checkpoint_ns, checkpoint_id, task_id, task_path"
            " FROM checkpoint_writes WHERE thread_id = ?",
            thread_id,
        )
        return {(ns, checkpoint, task): path for ns, checkpoint, task, path in found}

    def items(self) -> Iterator[Item]:
        """Yield the items of langgraph's store, if it is in the same database."""
        if "store" not in self._tables:
            return
        for prefix, key, value in self._rows("SELECT prefix, key, value FROM store"):
            document = json.loads(value) if isinstance(value, str | bytes) else value
            yield Item(tuple(prefix.split(".")), key, document)

    def crons(self) -> Iterator[Row]:
        """Yield nothing: a saver knows no crons."""
        return iter(())
