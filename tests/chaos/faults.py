"""Faults: a driver whose N-th statement fails, in each way that a database can fail."""

import random
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from psycopg import errors

from langgraph_runtime_sql.database.postgres.pipeline import Pipeline, Sent
from tests.support import databases

# The messages of SQLite for a failing disk and for a full disk.
MESSAGES = ("disk I/O error", "database or disk is full")


CODES = dict(zip(MESSAGES, (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL), strict=True))


class Faults:
    """Which statement fails, and how.

    Attributes:
        left: Number of counted statements that still succeed; None for all.
        burst: Number of consecutive failures.
        period: Least number of statements until the next failure, which is at most twice as far: at a
            constant distance, each attempt of the same work could fail. None for a single failure.
        where: `write` or `read`: only statements of such threads count.
        mode: `fails` (the statement has no effect; Postgres aborts the transaction), `aborts`
            (SQLite rolls the transaction back; the connection to Postgres is lost), `lost` (the
            statement takes effect, but an error reports that it did not).
        message: The message of the error.
        fired: The statements that failed.
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
        self._random = random.Random(0)
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
        """Let `left` statements succeed and the next one fail."""
        self.mode, self.message, self.burst, self.fired = mode, message, burst, []
        self.where, self.period, self.left = where, period, left
        self._random = random.Random(left)

    def disarm(self) -> None:
        """Let all statements succeed."""
        self.left = None

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect as the driver does, with these faults."""
        return self._driver.connect(self, *arguments, **options)

    def run(self, raw: Any, sql: str, statement: Callable[[], Any]) -> Any:
        """Run a statement of `raw`, or raise its fault."""
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
                self.left = self.period and self.period + self._random.randrange(self.period)
            self.fired.append(sql)
            return True


class _Sqlite:
    """Faults of SQLite's driver.

    Attributes:
        name: Prefix of the names of the engine's threads.
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
        """Apply the effect of a failed statement to the connection and return its error."""
        if mode == "aborts" and raw.in_transaction:
            sqlite3.Connection.execute(raw, "ROLLBACK")
        error = sqlite3.OperationalError(message)
        error.sqlite_errorcode = CODES[message]
        return error


class _Postgres:
    """Faults of Postgres's driver; see `_Sqlite` for the attributes."""

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
        """Apply the effect of a failed statement to the connection and return its error."""
        if mode == "fails":
            # An aborted transaction accepts only its end, and a commit rolls it back.
            raw.pgconn.exec_(b"SELECT 1 / 0")
            return errors.DiskFull(message)
        raw.close()
        return psycopg.OperationalError(f"the connection is lost: {message}")


def _text(query: Any) -> str:
    return query.decode() if isinstance(query, bytes) else str(query)


class _Connection(psycopg.Connection[Any]):
    """A psycopg connection with faults."""

    faults: Faults


class FaultyPipeline(Pipeline):
    """The engine's pipeline, where any command may fail; earlier commands are rolled back."""

    def _exchange(self, waiting: list[Sent]) -> None:
        exchange = partial(super()._exchange, waiting)
        *before, last = [sent.command.decode() for sent in waiting]
        if last == "ROLLBACK" or not isinstance(self.raw, _Connection):
            exchange()
            return
        for sql in before:
            self.raw.faults.run(self.raw, sql, lambda: None)
        self.raw.faults.run(self.raw, last, exchange)
