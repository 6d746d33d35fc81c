"""Faults: a driver whose N-th statement fails, in each of the ways in which a database lets it."""

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from psycopg import errors

from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from tests.support import databases

# What SQLite says of a disk that fails, and of one that is full.
MESSAGES = ("disk I/O error", "database or disk is full")


class Faults:
    """Which statement fails, and how.

    Attributes:
        left: How many more statements (of those that count) succeed; None for all.
        burst: How many fail in a row.
        period: After how many more statements it happens again; None for once.
        where: `write` or `read`: only statements of such threads count.
        mode: `fails` (nothing happens; Postgres gives up the transaction), `aborts` (SQLite undoes
            the transaction, as it does on some errors; the connection to Postgres is gone), `lost`
            (it happens, and an error says that it did not).
        message: What the error says.
        fired: What failed.
        watch: Called before each statement of a writer.
    """

    def __init__(self) -> None:
        self.left: int | None = None
        self.burst = 1
        self.period: int | None = None
        self.where = "write"
        self.mode = "fails"
        self.message = MESSAGES[0]
        self.fired: list[str] = []
        self.watch: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._driver: type[_Sqlite | _Postgres]
        self._driver = _Sqlite if databases.kind() == "sqlite" else _Postgres

    def arm(
        self,
        left: int,
        mode: str,
        message: str,
        *,
        burst: int = 1,
        where: str = "write",
        period: int | None = None,
    ) -> None:
        """Let the statement after the next `left` fail."""
        self.mode, self.message, self.burst, self.fired = mode, message, burst, []
        self.where, self.period, self.left = where, period, left

    def disarm(self) -> None:
        """Let all succeed."""
        self.left = None

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """The driver's `connect`, with these faults."""
        return self._driver.connect(self, *arguments, **options)

    def run(self, raw: Any, sql: str, statement: Callable[[], Any]) -> Any:
        """Run a statement of `raw`, or fail."""
        if self.watch is not None and self._is_of("write"):
            self.watch(sql)
        if not self._due(sql):
            return statement()
        if self.mode == "lost":
            statement()
        raise self._driver.fail(raw, sql, self.mode, self.message)

    def _is_of(self, where: str) -> bool:
        return threading.current_thread().name.startswith(f"{self._driver.name}-{where}")

    def _due(self, sql: str) -> bool:
        with self._lock:
            if self.left is None or not self._is_of(self.where):
                return False
            if self.mode == "lost" and sql != "COMMIT":
                return False
            self.left -= 1
            if self.left >= 0:
                return False
            if self.left <= -self.burst:
                self.left = self.period
            self.fired.append(sql)
            return True


class _Sqlite:
    """SQLite's driver.

    Attributes:
        name: What the names of the engine's threads begin with.
    """

    name = "sqlite"

    @staticmethod
    def connect(faults: Faults, *arguments: Any, **options: Any) -> sqlite3.Connection:
        class Cursor(sqlite3.Cursor):
            def execute(self, sql: str, *rest: Any) -> Any:
                return faults.run(self.connection, sql, partial(super().execute, sql, *rest))

            def executemany(self, sql: str, *rest: Any) -> Any:
                return faults.run(self.connection, sql, partial(super().executemany, sql, *rest))

        class Connection(sqlite3.Connection):
            def cursor(self, *_: Any) -> Any:
                return super().cursor(Cursor)

            def execute(self, sql: str, *rest: Any) -> Any:
                return faults.run(self, sql, partial(super().execute, sql, *rest))

            def executemany(self, sql: str, *rest: Any) -> Any:
                return faults.run(self, sql, partial(super().executemany, sql, *rest))

        return sqlite3.connect(*arguments, factory=Connection, **options)

    @staticmethod
    def fail(raw: sqlite3.Connection, sql: str, mode: str, message: str) -> Exception:
        """The error of a statement that fails, with what it does to the connection."""
        if mode == "aborts" and raw.in_transaction:
            sqlite3.Connection.execute(raw, "ROLLBACK")
        return sqlite3.OperationalError(message)


class _Postgres:
    """Postgres's driver; attributes as above."""

    name = "postgres"

    @staticmethod
    def connect(faults: Faults, *arguments: Any, **options: Any) -> Any:
        class Cursor(psycopg.Cursor[Any]):
            def execute(self, query: Any, *rest: Any, **how: Any) -> Any:
                run = partial(super().execute, query, *rest, **how)
                return faults.run(self.connection, _text(query), run)

            def executemany(self, query: Any, *rest: Any, **how: Any) -> Any:
                run = partial(super().executemany, query, *rest, **how)
                return faults.run(self.connection, _text(query), run)

        raw = _Connection.connect(*arguments, cursor_factory=Cursor, **options)
        raw.faults = faults
        return raw

    @staticmethod
    def fail(raw: psycopg.Connection[Any], sql: str, mode: str, message: str) -> Exception:
        """The error of a statement that fails, with what it does to the connection."""
        if mode == "fails":
            # In a transaction nothing but its end is possible any more, and a commit undoes it.
            raw.pgconn.exec_(b"SELECT 1 / 0")
            return errors.DiskFull(message)
        raw.close()
        return psycopg.OperationalError(f"the connection is lost: {message}")


def _text(query: Any) -> str:
    return query.decode() if isinstance(query, bytes) else str(query)


class _Connection(psycopg.Connection[Any]):
    """A connection of psycopg that knows its faults."""

    faults: Faults


class FaultyPipeline(Pipeline):
    """The engine's pipeline, of whose commands each may fail; those sent before it are undone."""

    def _exchange(self, waiting: list[Sent]) -> None:
        exchange = partial(super()._exchange, waiting)
        *before, last = [sent.command.decode() for sent in waiting]
        if last == "ROLLBACK" or not isinstance(self.raw, _Connection):
            exchange()
            return
        for sql in before:
            self.raw.faults.run(self.raw, sql, lambda: None)
        self.raw.faults.run(self.raw, last, exchange)
