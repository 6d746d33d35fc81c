"""Faults: a driver whose N-th statement fails, in each of the ways in which a disk lets it fail."""

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

# What SQLite says of a disk that fails, and of one that is full.
MESSAGES = ("disk I/O error", "database or disk is full")


class Faults:
    """Which statement fails, and how.

    Attributes:
        left: How many more statements (of those that count) succeed; None for all.
        burst: How many fail in a row.
        where: Only statements of threads whose names begin so count.
        mode: `fails` (nothing happens), `aborts` (SQLite undoes the transaction, as it does
            on some errors), `lost` (it happens, and an error says that it did not).
        message: What the error says.
        fired: What failed.
        watch: Called before each statement of the writer.
    """

    def __init__(self) -> None:
        self.left: int | None = None
        self.burst = 1
        self.where = ""
        self.mode = "fails"
        self.message = MESSAGES[0]
        self.fired: list[str] = []
        self.watch: Callable[[str], None] | None = None
        self._lock = threading.Lock()

    def arm(
        self, left: int, mode: str, message: str, *, burst: int = 1, where: str = "sqlite-write"
    ) -> None:
        """Let the statement after the next `left` fail."""
        self.mode, self.message, self.burst, self.fired = mode, message, burst, []
        self.where, self.left = where, left

    def disarm(self) -> None:
        """Let all succeed."""
        self.left = None

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        """`sqlite3.connect`, with these faults."""
        faults = self

        class Cursor(sqlite3.Cursor):
            def execute(self, sql: str, *rest: Any) -> Any:
                return faults._run(self.connection, sql, partial(super().execute, sql, *rest))

            def executemany(self, sql: str, *rest: Any) -> Any:
                return faults._run(self.connection, sql, partial(super().executemany, sql, *rest))

        class Connection(sqlite3.Connection):
            def cursor(self, *_: Any) -> Any:
                return super().cursor(Cursor)

            def execute(self, sql: str, *rest: Any) -> Any:
                return faults._run(self, sql, partial(super().execute, sql, *rest))

            def executemany(self, sql: str, *rest: Any) -> Any:
                return faults._run(self, sql, partial(super().executemany, sql, *rest))

        return sqlite3.connect(*arguments, factory=Connection, **options)

    def _run(
        self, raw: sqlite3.Connection, sql: str, statement: Callable[[], sqlite3.Cursor]
    ) -> sqlite3.Cursor:
        if self.watch is not None and threading.current_thread().name == "sqlite-write":
            self.watch(sql)
        if not self._due(sql):
            return statement()
        if self.mode == "lost":
            statement()
        elif self.mode == "aborts" and raw.in_transaction:
            sqlite3.Connection.execute(raw, "ROLLBACK")
        raise sqlite3.OperationalError(self.message)

    def _due(self, sql: str) -> bool:
        with self._lock:
            if self.left is None or not threading.current_thread().name.startswith(self.where):
                return False
            if self.mode == "lost" and sql != "COMMIT":
                return False
            self.left -= 1
            if self.left >= 0:
                return False
            if self.left <= -self.burst:
                self.left = None
            self.fired.append(sql)
            return True
