"""Connections: how an operation reads and writes inside its transaction."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.engine import Dialect

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.statements import (
    Compiled,
    Params,
    Row,
    Statement,
    compile_statement,
)
from langgraph_runtime_sql.errors import SearchTimeout

# SQLite checks the deadline every so many instructions; a row takes some dozens.
LOOK_EVERY = 10_000


class Limit(NamedTuple):
    """The deadline of a search on the clock `time.monotonic`, and the error raised after it."""

    deadline: float
    error: SearchTimeout

    @classmethod
    def of(cls, seconds: float, advice: str) -> "Limit":
        """Return a limit that ends `seconds` from now."""
        return cls(time.monotonic() + seconds, SearchTimeout(seconds, advice))

    def is_over(self, grace: float = 0.0) -> bool:
        """Return whether the deadline passed `grace` seconds ago."""
        return time.monotonic() > self.deadline + grace


Opener = Callable[["Connection", Sequence[tuple[str, str, str]], list[Row]], None]
_openers: list[Opener] = []


def register_opener(opener: Opener) -> None:
    """Set the function that decrypts sealed columns of read rows in place.

    Args:
        opener: Called with the connection, each sealed column as in `Compiled.sealed`, and the rows.
    """
    _openers[:] = [opener]


class Connection:
    """A driver's connection in an open transaction that its owner ends.

    Attributes:
        dialect_name: `sqlite` or `postgresql`.
        tenant: The one tenant whose rows the transaction sees, if there is one. Policies of
            the database enforce it; a statement that also names it lets an index be used.
        locks: Whether an operation must lock the rows that it reads in order to change them,
            because others write at the same time. SQLite has one writer.
        notes: What the operation did, for the audit log; see `audit.entry.Note`.
    """

    __slots__ = (
        *("_committed", "_dialect", "_last_now", "_limit", "_raw"),
        *("dialect_name", "locks", "notes", "tenant"),
    )

    def __init__(
        self, raw: Any, dialect: Dialect, *, locks: bool = False, tenant: str | None = None
    ) -> None:
        self._raw = raw
        self.tenant = tenant
        self.locks = locks
        self._last_now: datetime | None = None
        self._limit: Limit | None = None
        self._dialect = dialect
        self.dialect_name = dialect.name
        self._committed: list[Callable[[], None]] = []
        self.notes: list[Any] = []

    @property
    def raw(self) -> Any:
        """Return the driver's connection. Never commit, roll back or close it."""
        return self._raw

    @property
    def session(self) -> Any:
        """Return the object that lives as long as the driver's connection. Postgres only."""
        raise NotImplementedError

    def now(self) -> datetime:
        """Return the time of the clock that all writers of this database share.

        On Postgres that is the server's clock at the first call; each further call returns a later
        time. Decisions by date (leases, the order of runs, due dates) must not depend on the clock
        of one machine.
        """
        return now()

    def prefetch_now(self) -> object:
        """Queue the query for `now` with the next statements, to save a round trip."""

    def prefetch(self, statement: Statement, params: Params | None = None) -> "Prefetched":
        """Queue `statement`, and return its rows for a later read.

        On Postgres the first read sends all queued statements together.
        """
        rows = self.fetchall(statement, params)
        return Prefetched(lambda: rows)

    def send(self, statement: Statement, params: Params | None = None) -> None:
        """Run `statement` without its row count; it may be sent with the next statement."""
        self.execute(statement, params)

    def fetchall(self, statement: Statement, params: Params | None = None) -> list[Row]:
        """Return every row of `statement` as dicts in the types of `schema`."""
        compiled = compile_statement(statement, self._dialect)
        cursor = self.raw.execute(compiled.sql, compiled.bind(params))
        return self._opened(compiled, compiled.rows(cursor.fetchall()))

    def _opened(self, compiled: Compiled, found: list[Row]) -> list[Row]:
        """Return the rows of a statement with their sealed columns decrypted."""
        if compiled.sealed:
            for opener in _openers:
                opener(self, compiled.sealed, found)
        return found

    def fetchone(self, statement: Statement, params: Params | None = None) -> Row | None:
        """Return the first row of `statement`, or None."""
        rows = self.fetchall(statement, params)
        return rows[0] if rows else None

    def scalar(self, statement: Statement, params: Params | None = None) -> Any:
        """Return the first column of the first row, or None."""
        row = self.fetchone(statement, params)
        return None if row is None else next(iter(row.values()))

    def execute(self, statement: Statement, params: Params | None = None) -> int:
        """Run `statement`; return the number of rows it changed."""
        compiled = compile_statement(statement, self._dialect)
        return int(self.raw.execute(compiled.sql, compiled.bind(params)).rowcount)

    def executemany(self, statement: Statement, params: list[Params]) -> None:
        """Run `statement` once for each of `params`, as `send` does."""
        if not params:
            return
        compiled = compile_statement(statement, self._dialect)
        self.send_text(compiled.sql, [compiled.bind(each) for each in params])

    def send_text(self, text: str, params: Iterable[Sequence[Any] | Mapping[str, Any]]) -> None:
        """Run the driver's SQL once for each of `params`, as `send` does."""
        with closing(self.raw.cursor()) as cursor:
            cursor.executemany(text, params)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Roll back what the block did, and drop its `after_commit` callbacks and notes.

        An exception from the block is raised, and rolls back the whole operation.
        """
        callbacks, notes = len(self._committed), len(self.notes)
        self._do("SAVEPOINT rolled_back")
        yield
        self._do("ROLLBACK TO rolled_back")
        self._do("RELEASE rolled_back")
        del self._committed[callbacks:]
        del self.notes[notes:]

    def _do(self, command: str) -> None:
        self.raw.execute(command)

    @contextmanager
    def limited(self, seconds: float, advice: str) -> Iterator[None]:
        """Interrupt the block's statements after `seconds`; `check_deadline` raises from then on.

        Args:
            seconds: The time limit.
            advice: A sentence for the client: what to ask for instead.

        Raises:
            SearchTimeout: the limit was reached.
        """
        self._limit = limit = Limit.of(seconds, advice)
        self.raw.set_progress_handler(limit.is_over, LOOK_EVERY)
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise limit.error from error
        finally:
            self.raw.set_progress_handler(None, 0)
            self._limit = None

    def check_deadline(self) -> None:
        """Check the time limit; code that works long between two statements calls this.

        Raises:
            SearchTimeout: the limit was reached.
        """
        if self._limit is not None and self._limit.is_over():
            raise self._limit.error

    def overdue(self, grace: float) -> SearchTimeout | None:
        """Return the error of a block that goes on `grace` seconds after its time limit."""
        limit = self._limit
        return limit.error if limit is not None and limit.is_over(grace) else None

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn` after the commit. It must not fail or block."""
        self._committed.append(fn)

    def committed(self) -> list[Callable[[], None]]:
        """Return the callbacks to run after the commit; for the transaction's owner."""
        return self._committed


class Prefetched:
    """The rows of a query, which the first read waits for."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Callable[[], list[Row]]) -> None:
        self._rows = rows

    def all(self) -> list[Row]:
        """Return all rows."""
        return self._rows()

    def one(self) -> Row | None:
        """Return the first row, or None."""
        rows = self._rows()
        return rows[0] if rows else None
